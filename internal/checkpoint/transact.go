package checkpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
)

// maxConflicts is how long a transaction is repeated while it conflicts with another one, such as
// the transaction of a former owner's handler.
const maxConflicts = 2 * time.Second

// transact writes several rows in one transaction. A repetition after a lost reply does not write
// them twice.
func (s *Store) transact(ctx context.Context, writes ...types.TransactWriteItem) error {
	token := s.journal.Config.NewID()
	return backoff.Retry(func() error {
		_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes, ClientRequestToken: &token})
		if err != nil && !conflicts(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(retry.Pauses(5*time.Millisecond, time.Second, maxConflicts), ctx))
}

// refusal returns the old item of the first write of a transaction, and whether the condition of
// that write refused the transaction.
func refusal(err error) (item, bool) {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) == 0 {
		return nil, false
	}
	first := canceled.CancellationReasons[0]
	return first.Item, aws.ToString(first.Code) == "ConditionalCheckFailed"
}

func conflicts(err error) bool {
	var canceled *types.TransactionCanceledException
	return errors.As(err, &canceled) && slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == "TransactionConflict"
	})
}
