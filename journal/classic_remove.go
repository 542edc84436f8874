package journal

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
	"github.com/millrace-dev/millrace/internal/storage"
)

// removesBetweenReports is after how many events at most [Removal].Progress is called.
const removesBetweenReports = 500

func (l *classic) truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	var head Head
	for attempt := 0; ; attempt++ {
		var err error
		if head, err = l.head(ctx, id); err != nil {
			return err
		}
		if !head.DeletedAt.IsZero() {
			return head.deleted()
		}
		if err := l.needsExpiry(ctx, removal); err != nil {
			return err
		}
		if before <= head.TruncatedBefore {
			break // it may have ended early; what is left below is removed again
		}
		if head.Snapshot == nil || head.Snapshot.Number+1 < before {
			return notCovered(before)
		}
		err = l.updateHead(ctx, head, "SET #t = :t", attributeNames("#t", attrTruncatedBefore), item{":t": numberValue(before)})
		if err == nil {
			break
		}
		if !errors.Is(err, ErrConflict) || attempt == 9 {
			return err
		}
		if !sleep(ctx, time.Duration(attempt+1)*10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return l.removeEvents(ctx, head, max(before, head.TruncatedBefore), removal)
}

func (l *classic) delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error {
	head, err := l.head(ctx, id)
	if err != nil {
		return err
	}
	if head.Version != expected {
		return &ConflictError{ID: id, Expected: expected, Actual: head.Version}
	}
	if err := l.needsExpiry(ctx, removal); err != nil {
		return err
	}
	if head.DeletedAt.IsZero() {
		update := "SET #t = :t, #d = :d, #n = :n REMOVE #p, #g, #s, #e, #r"
		names := attributeNames("#t", attrTruncatedBefore, "#d", attrDeletedAt, "#p", l.config.Attributes.Payload,
			"#n", attrSnapshotNumber, "#g", attrSnapshotDigest, "#s", attrSnapshotSchema, "#e", attrEncoding, "#r", attrRedundant)
		values := item{":t": numberValue(head.Version + 1), ":d": numberValue(l.config.Now().UnixMilli()), ":n": numberValue(uint64(noSnapshot))}
		if err := l.updateHead(ctx, head, update, names, values); err != nil {
			return err
		}
	}
	if err := l.removeStates(ctx, head); err != nil {
		return err
	}
	return l.removeEvents(ctx, head, head.Version+1, removal)
}

// updateHead changes a head that nobody has moved since it was read, and sets :t as the place of
// truncation #t. The SDK repeats it when a reply was lost; a condition that is false because an
// earlier attempt was written is no conflict for the callers, who read again.
func (l *classic) updateHead(ctx context.Context, head Head, update string, names map[string]string, values item) error {
	names["#v"], names["#deleted"] = l.config.Attributes.Version, attrDeletedAt
	values[":v"] = numberValue(head.Version)
	err := l.updateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        &l.config.Tables.Snapshot,
		Key:              l.key(head.Aggregate, 0),
		UpdateExpression: &update,
		// A truncation that comes late must not take back one that went further: its events would
		// look lost.
		ConditionExpression:                 aws.String("#v = :v AND attribute_not_exists(#deleted) AND (attribute_not_exists(#t) OR #t <= :t)"),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return dynamo.Explain(err, l.config.Tables.Snapshot)
	}
	now, err := l.headOf(head.Aggregate, failed.Item)
	switch {
	case err != nil:
		return err
	case now.Version == head.Version && !now.DeletedAt.IsZero():
		return nil // it is a tombstone now, by an attempt of ours or by somebody else
	default:
		return &ConflictError{ID: head.Aggregate, Expected: head.Version, Actual: now.Version}
	}
}

// removeStates deletes what a deleted aggregate has in the snapshot table beside its head, whoever
// wrote it.
func (l *classic) removeStates(ctx context.Context, head Head) error {
	table, id, late := l.config.Tables.Snapshot, head.Aggregate, map[uint64]bool{}
	for _, n := range head.Redundant {
		late[n] = true
	}
	err := l.eachRow(ctx, table, id, func(rows []row) error {
		var keys []item
		for _, r := range rows {
			if r.number > 0 {
				keys = append(keys, l.key(id, r.number))
			}
			delete(late, r.number)
		}
		return l.deleteAll(ctx, table, keys)
	})
	if err != nil {
		return err
	}
	return l.deleteLate(ctx, table, l.keys(id, slices.Collect(maps.Keys(late))))
}

// removeEvents removes the events before a number. Head is that of before the removal.
func (l *classic) removeEvents(ctx context.Context, head Head, before uint64, removal Removal) error {
	table, id, expires, removed := l.config.Tables.Journal, head.Aggregate, l.config.Now().Add(removal.After), 0
	late := lastCommit(head, before)
	remove := l.deleteAll
	if removal.After > 0 {
		remove = func(ctx context.Context, table string, keys []item) error {
			return l.expireAll(ctx, table, keys, expires)
		}
	}
	err := l.eachRow(ctx, table, id, func(rows []row) error {
		var keys []item
		for _, r := range rows {
			delete(late, r.number)
			// By an earlier call, and not for longer.
			marked := removal.After > 0 && r.expires > 0 && r.expires <= uint64(expires.Unix())
			if r.number < before && !marked {
				keys = append(keys, l.key(id, r.number))
			}
		}
		for some := range slices.Chunk(keys, removesBetweenReports) {
			if err := remove(ctx, table, some); err != nil {
				return err
			}
			if removed += len(some); removal.Progress != nil {
				removal.Progress(removed)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	keys := l.keys(id, slices.Collect(maps.Keys(late)))
	if removal.After > 0 {
		return remove(ctx, table, keys) // which waits for transactions as well
	}
	return l.deleteLate(ctx, table, keys)
}

// lastCommit returns the numbers of the events that the last commit may have written, those before
// a number: its transaction may be under way still, when the head shows already.
func lastCommit(head Head, before uint64) map[uint64]bool {
	numbers := map[uint64]bool{}
	for n := before - 1; n >= max(head.TruncatedBefore, 1) && n+storage.MaxEvents > head.Version; n-- {
		numbers[n] = true
	}
	return numbers
}

// row is what removal needs to know of an item. Number is 0 for a head.
type row struct{ number, expires uint64 }

// eachRow returns the numbered rows of an aggregate page by page, in the order of their keys' text.
func (l *classic) eachRow(ctx context.Context, table string, id aggregate.ID, do func([]row) error) error {
	a := l.config.Attributes
	return l.numbered(ctx, table, id, []string{a.SortKey, a.TTL}, func(items []numberedItem) error {
		rows := make([]row, len(items))
		for i, it := range items {
			expires, _ := uintOf(it.item[a.TTL])
			rows[i] = row{it.number, expires}
		}
		return do(rows)
	})
}
