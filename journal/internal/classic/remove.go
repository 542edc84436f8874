package classic

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Truncate(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error {
	var head journaltype.Head
	for attempt := 0; ; attempt++ {
		var err error
		if head, err = l.Head(ctx, id); err != nil {
			return err
		}
		if !head.DeletedAt.IsZero() {
			return engine.DeletedErrorOf(head)
		}
		if err := l.NeedsExpiry(ctx, options); err != nil {
			return err
		}
		if before <= head.TruncatedBefore {
			// An earlier call may have ended early. Events below that are left are removed again.
			break
		}
		if head.Snapshot == nil || head.Snapshot.Number+1 < before {
			return engine.NotCovered(before)
		}
		err = l.updateHead(ctx, head, "SET #t = :t", table.AttributeNames("#t", attrTruncatedBefore), table.Item{":t": table.NumberValue(before)})
		if err == nil {
			break
		}
		if !errors.Is(err, journaltype.ErrConflict) || attempt == 9 {
			return err
		}
		if !retry.Sleep(ctx, time.Duration(attempt+1)*10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return l.removeEvents(ctx, head, max(before, head.TruncatedBefore), options)
}

func (l *layout) Delete(ctx context.Context, id aggregate.ID, expected uint64, options journaltype.RemoveOptions) error {
	head, err := l.Head(ctx, id)
	if err != nil {
		return err
	}
	if head.Version != expected {
		return &journaltype.ConflictError{ID: id, Expected: expected, Actual: head.Version}
	}
	if err := l.NeedsExpiry(ctx, options); err != nil {
		return err
	}
	if head.DeletedAt.IsZero() {
		update := "SET #t = :t, #d = :d, #n = :n REMOVE #p, #g, #s, #e, #r"
		names := table.AttributeNames("#t", attrTruncatedBefore, "#d", attrDeletedAt, "#p", l.Config.Attributes.Payload,
			"#n", attrSnapshotNumber, "#g", attrSnapshotDigest, "#s", attrSnapshotSchema, "#e", engine.AttrEncoding, "#r", attrRedundant)
		values := table.Item{":t": table.NumberValue(head.Version + 1), ":d": table.NumberValue(l.Config.Now().UnixMilli()), ":n": table.NumberValue(uint64(noSnapshot))}
		if err := l.updateHead(ctx, head, update, names, values); err != nil {
			return err
		}
	}
	if err := l.removeStates(ctx, head); err != nil {
		return err
	}
	return l.removeEvents(ctx, head, head.Version+1, options)
}

// updateHead changes a head if it still has the version that was read, and sets #t, the place of
// truncation, to :t. The SDK repeats the request if its reply was lost. A condition that is false
// because an earlier attempt was written is no problem: on a conflict the callers read the head
// again.
func (l *layout) updateHead(ctx context.Context, head journaltype.Head, update string, names map[string]string, values table.Item) error {
	names["#v"], names["#deleted"] = l.Config.Attributes.Version, attrDeletedAt
	values[":v"] = table.NumberValue(head.Version)
	err := l.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        &l.Config.Tables.Snapshot,
		Key:              l.key(head.Aggregate, 0),
		UpdateExpression: &update,
		// A late truncation must not undo one that went further, because the events in between
		// would look lost.
		ConditionExpression:                 aws.String("#v = :v AND attribute_not_exists(#deleted) AND (attribute_not_exists(#t) OR #t <= :t)"),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return dynamo.Explain(err, l.Config.Tables.Snapshot)
	}
	now, err := l.headOf(head.Aggregate, failed.Item)
	switch {
	case err != nil:
		return err
	case now.Version == head.Version && !now.DeletedAt.IsZero():
		return nil // it is a tombstone already, by an earlier attempt or by another caller
	default:
		return &journaltype.ConflictError{ID: head.Aggregate, Expected: head.Version, Actual: now.Version}
	}
}

// removeStates deletes the rows of a deleted aggregate in the snapshot table other than its head,
// including those of other programs.
func (l *layout) removeStates(ctx context.Context, head journaltype.Head) error {
	name, id, late := l.Config.Tables.Snapshot, head.Aggregate, map[uint64]bool{}
	for _, n := range head.Redundant {
		late[n] = true
	}
	err := l.eachRow(ctx, name, id, func(rows []row) error {
		var keys []table.Item
		for _, r := range rows {
			if r.number > 0 {
				keys = append(keys, l.key(id, r.number))
			}
			delete(late, r.number)
		}
		return l.DeleteAll(ctx, name, keys)
	})
	if err != nil {
		return err
	}
	return l.DeleteLate(ctx, name, l.keys(id, slices.Collect(maps.Keys(late))))
}

// removeEvents removes the events before a number. Head is the head as it was before the removal.
func (l *layout) removeEvents(ctx context.Context, head journaltype.Head, before uint64, options journaltype.RemoveOptions) error {
	name, id, expires, removed := l.Config.Tables.Journal, head.Aggregate, l.Config.Now().Add(options.After), 0
	late := lastCommit(head, before)
	remove := l.DeleteAll
	if options.After > 0 {
		remove = func(ctx context.Context, name string, keys []table.Item) error {
			return l.ExpireAll(ctx, name, keys, expires)
		}
	}
	err := l.eachRow(ctx, name, id, func(rows []row) error {
		var keys []table.Item
		for _, r := range rows {
			delete(late, r.number)
			// An earlier call marked it to expire at this time or before.
			marked := options.After > 0 && r.expires > 0 && r.expires <= uint64(expires.Unix())
			if r.number < before && !marked {
				keys = append(keys, l.key(id, r.number))
			}
		}
		for some := range slices.Chunk(keys, engine.RemovesBetweenReports) {
			if err := remove(ctx, name, some); err != nil {
				return err
			}
			if removed += len(some); options.Progress != nil {
				options.Progress(removed)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	keys := l.keys(id, slices.Collect(maps.Keys(late)))
	if options.After > 0 {
		return remove(ctx, name, keys) // it also waits for transactions
	}
	return l.DeleteLate(ctx, name, keys)
}

// lastCommit returns the numbers, below before, of the events that the last commit may have
// written. Its transaction may still be under way although the head already shows it.
func lastCommit(head journaltype.Head, before uint64) map[uint64]bool {
	numbers := map[uint64]bool{}
	for n := before; n > max(head.TruncatedBefore, 1) && n+storage.MaxEvents > head.Version+1; n-- {
		numbers[n-1] = true
	}
	return numbers
}

// row is the part of an item that a removal needs. Number is 0 for a head.
type row struct{ number, expires uint64 }

// eachRow calls do for each page of the numbered rows of an aggregate, in the order of their keys
// as text.
func (l *layout) eachRow(ctx context.Context, name string, id aggregate.ID, do func([]row) error) error {
	a := l.Config.Attributes
	return l.numbered(ctx, name, id, []string{a.SortKey, a.TTL}, func(items []numberedItem) error {
		rows := make([]row, len(items))
		for i, it := range items {
			expires, _ := table.UintOf(it.item[a.TTL])
			rows[i] = row{it.number, expires}
		}
		return do(rows)
	})
}
