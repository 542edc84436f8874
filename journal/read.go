package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

const (
	// maxKeys is DynamoDB's limit for one BatchGetItem.
	maxKeys = 100
	// byKeyUpTo is how many events are read by key, strongly consistent, one read unit for each
	// of up to 4 KB. Beyond it the index is cheaper: half a unit for 4 KB of events together.
	byKeyUpTo = 8
	// transactKeys keeps a TransactGetItems under its 4 MB, whatever the items weigh.
	transactKeys = 10
)

// Events yields the events of an aggregate with the numbers from..to, in order and without a gap,
// or ends with an error. It never ends early without an error: a caller knows from the head which
// events exist.
//
// It reads a few events by key. It reads more from the aggregate index, page by page (1 MB each),
// and reads by key what that index, being eventually consistent, does not show yet. It reads an
// event that is still absent again, with backoff and finally in a transaction, before it reports it
// as corrupt: head and events are separate reads, and a transaction can show in one before the
// other.
//
// If events were removed on purpose, it ends with a [*TruncatedError], which says where to
// continue. It may yield some of them before.
//
// Errors: [*CorruptItemError], [*TruncatedError], [*EncodingError], [ErrKeyDestroyed],
// [*EventTypeError], [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError, the
// context's.
func (j *Journal) Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*Record, error] {
	return j.engine.Events(ctx, id, from, to)
}

func (j *engine) Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		var undecodable error
		err := j.events(ctx, id, from, to, func(stored *Record) bool {
			var r *Record
			if r, undecodable = j.Decode(ctx, stored); undecodable != nil {
				return false
			}
			return yield(r, nil)
		})
		if undecodable != nil {
			err = undecodable
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("read events %d to %d of %s: %w", from, to, id, err))
		}
	}
}

// errStop: the reader of the sequence has had enough.
var errStop = errors.New("stop")

func (j *engine) events(ctx context.Context, id aggregate.ID, from, to uint64, yield func(*Record) bool) error {
	if err := id.Validate(); err != nil {
		return err
	}
	next := max(from, 1)
	// fill reads by key what is left out before the event of that number.
	fill := func(number uint64) error {
		for next < number {
			last := next + min(number-next, maxKeys) - 1
			records, err := j.byKey(ctx, id, next, last)
			if err != nil {
				return err
			}
			for _, record := range records {
				if !yield(record) {
					return errStop
				}
			}
			next = last + 1
		}
		return nil
	}
	if to == math.MaxUint64 {
		to-- // so that there is a number after it; no event has either
		next = min(next, to)
	}
	if next > to || to-next < byKeyUpTo {
		return fill(to + 1)
	}
	a := j.config.Attributes
	query := &dynamodb.QueryInput{
		TableName:                &j.config.Tables.Journal,
		IndexName:                &j.config.Indexes.JournalAggregate,
		KeyConditionExpression:   aws.String("#aid = :aid AND #n BETWEEN :from AND :to"),
		ExpressionAttributeNames: attributeNames("#aid", a.AggregateID, "#n", a.SequenceNumber),
		ExpressionAttributeValues: item{
			":aid": stringValue(id.String()), ":from": numberValue(next), ":to": numberValue(to),
		},
	}
	partition := j.partitionKey(id)
	for {
		page, err := j.client.Query(ctx, query)
		if err != nil {
			return dynamo.Explain(err, j.config.Tables.Journal)
		}
		for _, it := range page.Items {
			if p, _ := j.keysOf(it); p != partition {
				continue // another type's aggregate with the same aid
			}
			r, err := j.recordOf(it)
			if err != nil {
				return err
			}
			if r.Number < next {
				continue
			}
			if err := fill(r.Number); err != nil {
				return err
			}
			if next++; !yield(r) {
				return errStop
			}
		}
		if page.LastEvaluatedKey == nil {
			break
		}
		query.ExclusiveStartKey = page.LastEvaluatedKey
	}
	return fill(to + 1)
}

// byKey reads the events from..to, at most maxKeys, strongly consistent.
func (j *engine) byKey(ctx context.Context, id aggregate.ID, from, to uint64) ([]*Record, error) {
	records := make([]*Record, to-from+1)
	missing := func() (numbers []uint64) {
		for i, r := range records {
			if r == nil {
				numbers = append(numbers, from+uint64(i))
			}
		}
		return numbers
	}
	keep := func(items []item) error {
		for _, it := range items {
			r, err := j.recordOf(it)
			if err != nil {
				return err
			}
			if r.Number >= from && r.Number <= to {
				records[r.Number-from] = r
			}
		}
		return nil
	}
	wait := backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond)), 4)
	for {
		items, err := j.batchGet(ctx, id, missing())
		if err != nil {
			return nil, err
		}
		if err := keep(items); err != nil {
			return nil, err
		}
		numbers := missing()
		if len(numbers) == 0 {
			return records, nil
		}
		if err := j.truncated(ctx, id, numbers[0]); err != nil {
			return nil, err
		}
		if !sleep(ctx, wait.NextBackOff()) {
			break
		}
	}
	for numbers := missing(); len(numbers) > 0 && ctx.Err() == nil; {
		some := numbers[:min(len(numbers), transactKeys)]
		numbers = numbers[len(some):]
		items, err := j.transactGet(ctx, j.config.Tables.Journal, j.keys(id, some))
		if err != nil {
			return nil, err
		}
		if err := keep(items); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if numbers := missing(); len(numbers) > 0 {
		return nil, &CorruptItemError{
			Aggregate: id, Number: numbers[0], Table: j.config.Tables.Journal, PartitionKey: j.partitionKey(id), SortKey: storage.SortKey(id, numbers[0]),
			Reason: fmt.Sprintf("is missing, though later events or the head say that it was written (%d missing in all)", len(numbers)),
		}
	}
	return records, nil
}

// truncated reports whether an event that is absent has been removed on purpose.
func (j *engine) truncated(ctx context.Context, id aggregate.ID, number uint64) error {
	head, err := j.readHead(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound), errors.As(err, new(*CorruptItemError)):
		return nil // what that means for the events is the caller's question
	case err != nil:
		return err
	case number < head.TruncatedBefore:
		return &TruncatedError{ID: id, Before: head.TruncatedBefore}
	}
	return nil
}

// batchGet reads what is there of the given events, and all that DynamoDB leaves unprocessed.
func (j *engine) batchGet(ctx context.Context, id aggregate.ID, numbers []uint64) (items []item, err error) {
	table := j.config.Tables.Journal
	if len(numbers) == 1 {
		it, err := j.getItem(ctx, table, j.key(id, numbers[0]))
		if it != nil {
			items = append(items, it)
		}
		return items, err
	}
	return j.batchGetKeys(ctx, table, j.keys(id, numbers))
}

// batchGetKeys reads what is there of at most maxKeys items, strongly consistent, in any order.
func (j *engine) batchGetKeys(ctx context.Context, table string, keys []item) (items []item, err error) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(j.config.RetryBudget))
	for len(keys) > 0 {
		out, err := j.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return nil, dynamo.Explain(err, table)
		}
		items = append(items, out.Responses[table]...)
		keys = out.UnprocessedKeys[table].Keys
		if len(out.Responses[table]) > 0 {
			wait.Reset() // a full reply of 16 MB is progress, not throttling
			continue
		}
		if len(keys) > 0 && !sleep(ctx, wait.NextBackOff()) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: table %q left %d keys unprocessed for %s", ErrThrottled, table, len(keys), j.config.RetryBudget)
		}
	}
	return items, nil
}

// transactGet sees either all or nothing of any commit. It leaves out items that are not there.
func (j *engine) transactGet(ctx context.Context, table string, keys []item) (items []item, err error) {
	input := &dynamodb.TransactGetItemsInput{}
	for _, key := range keys {
		input.TransactItems = append(input.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key}})
	}
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(j.config.RetryBudget))
	for {
		out, err := j.client.TransactGetItems(ctx, input)
		if err == nil {
			for _, r := range out.Responses {
				if r.Item != nil {
					items = append(items, r.Item)
				}
			}
			return items, nil
		}
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) || !sleep(ctx, wait.NextBackOff()) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, dynamo.Explain(err, table)
		}
	}
}
