package projection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// transactions is the target of a projection that commits its writes in a transaction with a
// position in the checkpoint table.
type transactions struct {
	client     Client
	projection *Projection
}

func (t transactions) accepts(r *journal.Record, writes []Write) error {
	if len(writes) > maxWrites {
		return &TooManyWritesError{Aggregate: r.Aggregate, Number: r.Number, Count: len(writes)}
	}
	return nil
}

func (t transactions) commit(ctx context.Context, p *subscriber.Position, run func(context.Context, subscriber.Advance) error) error {
	return p.Commit(ctx, run)
}

func (t transactions) commitAhead(
	ctx context.Context, p *subscriber.Position, most int, run func(context.Context, subscriber.Advance, []*journal.Record) error,
) error {
	return p.CommitAhead(ctx, most, run)
}

// write sends the writes with the position. It sends them again without the idempotent writes
// whose condition is false.
func (t transactions) write(ctx context.Context, r *journal.Record, advance subscriber.Advance, writes []Write) error {
	p := t.projection
	left := make([]int, len(writes)) // indexes of the writes to send
	for i := range writes {
		left[i] = i
	}
	end := time.Now().Add(p.config.RetryBudget)
	wait := backoff.WithContext(retry.Pauses(5*time.Millisecond, 500*time.Millisecond, p.config.RetryBudget), ctx)
	return backoff.Retry(func() error {
		for {
			items := []types.TransactWriteItem{advance.Item}
			for _, i := range left {
				items = append(items, writes[i].item)
			}
			err := t.attempt(ctx, items, time.Until(end))
			var canceled *types.TransactionCanceledException
			if err == nil {
				return nil
			}
			if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(items) {
				// The SDK has repeated the request where that helps.
				return backoff.Permanent(explain(err, r, writes, nil))
			}
			reasons := canceled.CancellationReasons
			if failed(reasons[0]) {
				if advance.Done(reasons[0].Item) {
					return nil // the reply to an earlier attempt was lost
				}
				if advance.Moved(reasons[0].Item) {
					return backoff.Permanent(errMoved)
				}
				return backoff.Permanent(subscriber.ErrFenced)
			}
			var keep []int
			for n, i := range left {
				switch {
				case !failed(reasons[n+1]):
					keep = append(keep, i)
				case !writes[i].done(reasons[n+1]):
					return backoff.Permanent(&ConditionError{
						Aggregate: r.Aggregate, Number: r.Number, EventType: r.EventType, Table: writes[i].table(), Write: i,
					})
				}
			}
			if len(keep) == len(left) {
				if repeatable(reasons) {
					return err
				}
				sent := make([]Write, len(left))
				for n, i := range left {
					sent[n] = writes[i]
				}
				return backoff.Permanent(explain(err, r, sent, reasons[1:]))
			}
			p.stats.dropped.Add(uint64(len(left) - len(keep)))
			left = keep
		}
	}, wait)
}

// minAttempt is the minimum time for a request, so that the last request of a budget can succeed.
const minAttempt = time.Second

// attempt sends the transaction once. A connection that hangs must not exceed the budget, since the
// aggregate waits meanwhile, and so do the other aggregates of its worker.
func (t transactions) attempt(ctx context.Context, items []types.TransactWriteItem, left time.Duration) error {
	once, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	_, err := t.client.TransactWriteItems(once, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	if err != nil && once.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within the RetryBudget of %v: %w", t.projection.config.RetryBudget, err)
	}
	return err
}

var errMoved = errors.New("an earlier attempt succeeded after it had been cancelled: the message is delivered again")

func failed(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// repeatable reports whether a transaction failed only for temporary reasons.
func repeatable(reasons []types.CancellationReason) bool {
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case "None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
		default:
			return false
		}
	}
	return true
}
