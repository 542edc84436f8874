package table

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// maxBatchWrites is DynamoDB's limit for one BatchWriteItem.
const maxBatchWrites = 25

// lateAtOnce is the number of requests that DeleteLate makes at the same time.
const lateAtOnce = 16

// DeleteLate deletes items by key that are not visible although they must exist: a transaction that
// writes one item after the other is under way. It waits for that transaction. A batch request
// cannot do this.
func (t *Table) DeleteLate(ctx context.Context, name string, keys []Item) error {
	deletes, ctx := errgroup.WithContext(ctx)
	deletes.SetLimit(lateAtOnce)
	for _, key := range keys {
		deletes.Go(func() error {
			return dynamo.Explain(t.WhileUnderWay(ctx, func() error {
				_, err := t.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &name, Key: key})
				return err
			}), name)
		})
	}
	return deletes.Wait()
}

// DeleteAll deletes items by key, whether or not they exist.
func (t *Table) DeleteAll(ctx context.Context, name string, keys []Item) error {
	wait := t.Patience()
	for len(keys) > 0 {
		some := keys[:min(len(keys), maxBatchWrites)]
		requests := make([]types.WriteRequest, len(some))
		for i, key := range some {
			requests[i].DeleteRequest = &types.DeleteRequest{Key: key}
		}
		out, err := t.Client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{name: requests},
		})
		if err != nil {
			return dynamo.Explain(err, name)
		}
		left := out.UnprocessedItems[name]
		rest := make([]Item, 0, len(left)+len(keys)-len(some))
		for _, request := range left {
			rest = append(rest, request.DeleteRequest.Key)
		}
		keys = append(rest, keys[len(some):]...)
		if len(left) < len(some) {
			wait.Reset() // that is progress
			if len(left) == 0 {
				continue
			}
		}
		if !retry.Sleep(ctx, wait.NextBackOff()) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%w: table %q left %d deletes unprocessed for %s", journaltype.ErrThrottled, name, len(keys), t.Config.RetryBudget)
		}
	}
	return nil
}
