package process

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// Due yields the pending timeouts and commands of a type that managers handle before a time, in the
// order of Pending.Next. It reads the index of the table instead of the whole table. The zero time
// selects all of them.
//
// If an attempt at a timeout is running or the last one failed, its Next is [Config].RetryAfter
// after the beginning of that attempt, and so later than its At. To find overdue timeouts, pass a
// time that is at least RetryAfter in the future, and compare At. Due yields nothing for a type
// that has nothing pending or no manager.
//
// The index is eventually consistent; the rows are read strongly consistent. If managers handle
// rows meanwhile, Due omits finished rows, yields each row at most once, and may yield a row out of
// order.
//
// Due reads as the sequence is consumed. From each queue of the type ([Config].Queues) it reads
// pages of 25 rows of the index, which grow to 200. Then it reads rows of the table, first 25 and
// later 100 at once. Due costs half a read unit for the number of queues. It costs half a unit for
// each 4 KB of the index, and at least that for each page and each queue. And it costs one unit for
// each 4 KB of each row.
//
// The sequence ends with the first error. Errors: [*ConfigError] for an empty type,
// journal.ErrTableMissing, journal.ErrThrottled, journal.ErrAccess, and the error of ctx.
func (b *Backlog) Due(ctx context.Context, processType string, before time.Time) iter.Seq2[Pending, error] {
	return func(yield func(Pending, error) bool) {
		if err := b.due(ctx, processType, before, func(p Pending) bool { return yield(p, nil) }); err != nil {
			yield(Pending{}, fmt.Errorf("read what is due: %w", err))
		}
	}
}

// firstDue and mostDue are the first and the largest number of rows of the table that are read at
// once.
const firstDue, mostDue = 25, 100

// due passes pending rows to yield until yield returns false.
func (b *Backlog) due(ctx context.Context, processType string, before time.Time, yield func(Pending) bool) error {
	queues, err := b.dueQueues(ctx, processType, before)
	if err != nil {
		return err
	}
	for size := firstDue; ; size = min(2*size, mostDue) {
		keys, err := queues.next(ctx, size)
		if err != nil {
			return explain(err, b.table)
		}
		if len(keys) == 0 {
			return nil
		}
		rows, err := b.rowsOf(ctx, keys)
		if err != nil {
			return explain(err, b.table)
		}
		for _, key := range keys {
			row, isThere := rows[rowName(key)]
			if !isThere || !before.IsZero() && !timeOf(row[dueAttribute]).Before(before) {
				continue // it is finished, or due later
			}
			if !yield(pendingOf(row)) {
				return nil
			}
		}
	}
}

// dueQueues returns the queues of a type. Nothing was read from them yet.
func (b *Backlog) dueQueues(ctx context.Context, processType string, before time.Time) (*dueQueues, error) {
	if processType == "" {
		return nil, &ConfigError{"the type", "is empty: name a type of processes"}
	}
	client := bounded{b.client, func(time.Time, middleware.Metadata) {}}
	known := newQueues(client, processType, Config{Table: b.table})
	count, err := known.stored(ctx)
	if err != nil {
		return nil, explain(err, b.table)
	}
	merged := &dueQueues{seen: map[string]struct{}{}}
	for n := range count {
		merged.queues = append(merged.queues, &dueQueue{read: b.readQueue(known.name(n), before), limit: firstDue})
	}
	return merged, nil
}

// readQueue returns a function that reads a page of a queue in the index.
func (b *Backlog) readQueue(queue string, before time.Time) func(ctx context.Context, start item, limit int32) ([]item, item, error) {
	condition, names, values := "#q = :q", map[string]string{"#q": queueAttribute}, item{":q": textValue(queue)}
	if !before.IsZero() {
		condition += " AND #d < :before"
		names["#d"], values[":before"] = dueAttribute, timeValue(before)
	}
	return func(ctx context.Context, start item, limit int32) ([]item, item, error) {
		out, err := dynamo.Within(ctx, &dynamodb.QueryInput{
			TableName: &b.table, IndexName: aws.String(dueIndex), KeyConditionExpression: &condition,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ExclusiveStartKey: start, Limit: &limit,
		}, b.client.Query, nil)
		if err != nil {
			return nil, nil, err
		}
		return out.Items, out.LastEvaluatedKey, nil
	}
}

// dueQueues merges the queues of a type.
type dueQueues struct {
	queues []*dueQueue
	// When a manager takes a row, the row moves back in the queue, and would be read again.
	seen map[string]struct{}
}

// next returns the keys of up to n rows, the earliest first. It returns each row once.
func (d *dueQueues) next(ctx context.Context, n int) (keys []item, err error) {
	for len(keys) < n {
		var first *dueQueue
		for _, q := range d.queues {
			if err := q.fill(ctx); err != nil {
				return nil, err
			}
			if len(q.rows) > 0 && (first == nil || q.due.Before(first.due)) {
				first = q
			}
		}
		if first == nil {
			return keys, nil
		}
		row := first.take()
		if _, isSeen := d.seen[rowName(row)]; !isSeen {
			d.seen[rowName(row)] = struct{}{}
			keys = append(keys, item{pkey: row[pkey], skey: row[skey]})
		}
	}
	return keys, nil
}

// dueQueue reads one queue in the order in which its rows are due.
type dueQueue struct {
	read  func(ctx context.Context, start item, limit int32) (rows []item, next item, err error)
	limit int32
	start item
	ended bool
	rows  []item    // read, but not taken
	due   time.Time // when the first of rows is due
}

// fill reads until rows has an element or the queue ends.
func (q *dueQueue) fill(ctx context.Context) (err error) {
	for len(q.rows) == 0 && !q.ended {
		if q.rows, q.start, err = q.read(ctx, q.start, q.limit); err != nil {
			return err
		}
		q.ended, q.limit = q.start == nil, min(2*q.limit, dueAtOnce)
		q.setDue()
	}
	return nil
}

// take returns the first row. There must be one.
func (q *dueQueue) take() (row item) {
	row, q.rows = q.rows[0], q.rows[1:]
	q.setDue()
	return row
}

func (q *dueQueue) setDue() {
	if len(q.rows) > 0 {
		q.due = timeOf(q.rows[0][dueAttribute])
	}
}

// rowsOf reads rows by their keys, strongly consistent, and returns the existing ones by their
// names. It repeats the read of keys that DynamoDB leaves unprocessed, for half a minute without
// progress.
func (b *Backlog) rowsOf(ctx context.Context, keys []item) (map[string]item, error) {
	rows := map[string]item{}
	wait := retry.Pauses(50*time.Millisecond, 5*time.Second, 30*time.Second)
	err := backoff.Retry(func() error {
		for {
			out, err := dynamo.Within(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{b.table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
			}, b.client.BatchGetItem, nil)
			if err != nil {
				return backoff.Permanent(err)
			}
			for _, row := range out.Responses[b.table] {
				rows[rowName(row)] = row
			}
			left := out.UnprocessedKeys[b.table].Keys
			switch {
			case len(left) == 0:
				return nil
			case len(left) == len(keys):
				return fmt.Errorf("%d rows were left: %w", len(left), journal.ErrThrottled)
			}
			keys = left
			wait.Reset()
		}
	}, backoff.WithContext(wait, ctx))
	return rows, err
}
