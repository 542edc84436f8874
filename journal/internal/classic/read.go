package classic

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

const (
	// byKeyUpTo is the largest number of events that are read by key, strongly consistent. Each
	// costs one read unit for up to 4 KB. For more events the index is cheaper: half a unit for
	// each 4 KB of all events together.
	byKeyUpTo = 8
	// transactKeys keeps a TransactGetItems under its 4 MB, whatever the items weigh.
	transactKeys = 10
)

func (l *layout) Events(ctx context.Context, id aggregate.ID, from, to uint64, yield func(*journaltype.Record) bool) error {
	next := max(from, 1)
	// fill reads by key the events that the index left out before the event with that number.
	fill := func(number uint64) error {
		for next < number {
			last := next + min(number-next, table.MaxKeys) - 1
			records, err := l.byKey(ctx, id, next, last)
			if err != nil {
				return err
			}
			for _, record := range records {
				if !yield(record) {
					return engine.ErrStop
				}
			}
			next = last + 1
		}
		return nil
	}
	if to == math.MaxUint64 {
		// The code below adds 1 to it. No event has this number.
		to--
		next = min(next, to)
	}
	if next > to || to-next < byKeyUpTo {
		return fill(to + 1)
	}
	a := l.Config.Attributes
	query := &dynamodb.QueryInput{
		TableName:                &l.Config.Tables.Journal,
		IndexName:                &l.Config.Indexes.JournalAggregate,
		KeyConditionExpression:   aws.String("#aid = :aid AND #n BETWEEN :from AND :to"),
		ExpressionAttributeNames: table.AttributeNames("#aid", a.AggregateID, "#n", a.SequenceNumber),
		ExpressionAttributeValues: table.Item{
			":aid": table.StringValue(id.String()), ":from": table.NumberValue(next), ":to": table.NumberValue(to),
		},
	}
	partition := l.partitionKey(id)
	for {
		page, err := l.Client.Query(ctx, query)
		if err != nil {
			return dynamo.Explain(err, l.Config.Tables.Journal)
		}
		for _, it := range page.Items {
			if p, _ := l.KeysOf(it); p != partition {
				continue // another type's aggregate with the same aid
			}
			r, err := l.recordOf(it)
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
				return engine.ErrStop
			}
		}
		if page.LastEvaluatedKey == nil {
			break
		}
		query.ExclusiveStartKey = page.LastEvaluatedKey
	}
	return fill(to + 1)
}

// mostClaimed is the maximum number of events that a hint causes to be read by key at once. Each
// key without an event costs one read unit.
const mostClaimed = 25

// After reads as many events by key as the hint claims, because the head holds the state and may
// be large. It ends at the claimed version, or at the first event that does not exist.
func (l *layout) After(ctx context.Context, id aggregate.ID, number, claimed uint64, yield func(*journaltype.Record) bool) (found uint64, err error) {
	claimed = max(claimed, number+1)
	for next, atOnce := number+1, uint64(1); next <= claimed; atOnce = mostClaimed {
		numbers := make([]uint64, min(atOnce, claimed-next+1))
		for i := range numbers {
			numbers[i] = next + uint64(i)
		}
		items, err := l.batchGet(ctx, id, numbers)
		if err != nil {
			return found, err
		}
		records := map[uint64]*journaltype.Record{}
		for _, it := range items {
			r, err := l.recordOf(it)
			if err != nil {
				return found, err
			}
			records[r.Number] = r
		}
		for ; len(numbers) > 0 && records[next] != nil; next, numbers = next+1, numbers[1:] {
			if found = next; !yield(records[next]) {
				return found, nil
			}
		}
		if len(numbers) > 0 {
			return found, nil
		}
	}
	return found, nil
}

// byKey reads the events with the numbers from..to, at most MaxKeys, strongly consistent.
func (l *layout) byKey(ctx context.Context, id aggregate.ID, from, to uint64) ([]*journaltype.Record, error) {
	records := make([]*journaltype.Record, to-from+1)
	missing := func() (numbers []uint64) {
		for i, r := range records {
			if r == nil {
				numbers = append(numbers, from+uint64(i))
			}
		}
		return numbers
	}
	keep := func(items []table.Item) error {
		for _, it := range items {
			r, err := l.recordOf(it)
			if err != nil {
				return err
			}
			if r.Number >= from && r.Number <= to {
				records[r.Number-from] = r
			}
		}
		return nil
	}
	wait := table.UntilShown()
	for {
		items, err := l.batchGet(ctx, id, missing())
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
		if err := l.truncated(ctx, id, numbers[0]); err != nil {
			return nil, err
		}
		if !retry.Sleep(ctx, wait.NextBackOff()) {
			break
		}
	}
	for numbers := missing(); len(numbers) > 0 && ctx.Err() == nil; {
		some := numbers[:min(len(numbers), transactKeys)]
		numbers = numbers[len(some):]
		items, err := l.TransactGet(ctx, l.Config.Tables.Journal, l.keys(id, some))
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
		return nil, &journaltype.CorruptItemError{
			Aggregate: id, Number: numbers[0], Table: l.Config.Tables.Journal, PartitionKey: l.partitionKey(id), SortKey: storage.SortKey(id, numbers[0]),
			Missing: true,
			Reason:  fmt.Sprintf("is missing, although later events or the head show that it was written (%d missing in all)", len(numbers)),
		}
	}
	return records, nil
}

// truncated returns a *journal.TruncatedError if the event with that number was removed on purpose.
func (l *layout) truncated(ctx context.Context, id aggregate.ID, number uint64) error {
	head, err := l.Head(ctx, id)
	switch {
	case errors.Is(err, journaltype.ErrNotFound), errors.As(err, new(*journaltype.CorruptItemError)):
		return nil // the caller decides what this means for the events
	case err != nil:
		return err
	case number < head.TruncatedBefore:
		return &journaltype.TruncatedError{ID: id, Before: head.TruncatedBefore}
	}
	return nil
}

// batchGet reads those of the given events that exist, and repeats reads that DynamoDB left
// unprocessed.
func (l *layout) batchGet(ctx context.Context, id aggregate.ID, numbers []uint64) (items []table.Item, err error) {
	name := l.Config.Tables.Journal
	if len(numbers) == 1 {
		it, err := l.GetItem(ctx, name, l.key(id, numbers[0]))
		if it != nil {
			items = append(items, it)
		}
		return items, err
	}
	return l.BatchGetKeys(ctx, name, l.keys(id, numbers), true)
}

func (l *layout) EncodingAt(ctx context.Context, id aggregate.ID, number uint64) (names string, err error) {
	it, err := l.GetItem(ctx, l.Config.Tables.Journal, l.key(id, number))
	if err != nil {
		return "", err
	}
	if it != nil {
		names, _ = engine.EncodingOf(it)
		return names, nil
	}
	head, err := l.Head(ctx, id)
	if err != nil || head.Snapshot == nil {
		return "", err
	}
	return head.Snapshot.Encoding, nil
}
