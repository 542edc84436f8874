package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Removal says how [Journal.Truncate] and [Journal.Delete] remove events. The zero value deletes
// them at once, including those that a consumer group has not read yet: the group skips them.
type Removal struct {
	// After, if positive, leaves the events to DynamoDB's time to live, which deletes them when
	// that time has passed, usually within two days. Consumer groups that lag behind have that time
	// to read them. The journal table needs time to live on its TTL attribute, which [Create] turns
	// on.
	After time.Duration
	// Progress, if set, is called with the number of events that were removed or marked so far, at
	// least after every 500.
	Progress func(events int)
}

const (
	expiresAtOnce         = 16 // requests that give events a time to live
	removesBetweenReports = 500
)

// Truncate removes the events of an aggregate with numbers below before, which its latest snapshot
// replaces. It first records that in the head, and then removes the events. From then on they may
// be missing in any order, and reading one returns a [*TruncatedError] instead of a
// [*CorruptItemError]. The aggregate continues; numbers are not used again.
//
// The snapshot must be of event before-1 or a later one, and one of ours. Otherwise a load would
// need the events. If its reader refuses the snapshot later, because of its schema, nothing can
// replace it.
//
// It costs one write unit for each KB of each event and as much in each index, and one read unit
// for each 4 KB. After an error, or if its process ended, call it again: it continues with what is
// left.
//
// Errors: with nothing removed [ErrNotCovered], [ErrNotFound], [*DeletedError],
// *aggregate.InvalidIDError, [*CorruptItemError] of the head, [*ConfigError] for a [Removal].After
// without time to live, and [ErrConflict] if other writers update the head again and again; at any
// time [ErrThrottled], [ErrTableMissing], [ErrAccess], the context's.
func (j *Journal) Truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	return j.engine.Truncate(ctx, id, before, removal)
}

func (j *engine) Truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	if err := j.truncate(ctx, id, before, removal); err != nil {
		return fmt.Errorf("truncate %s before event %d: %w", id, before, err)
	}
	return nil
}

func (j *engine) truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	if err := id.Validate(); err != nil {
		return err
	}
	var head Head
	for attempt := 0; ; attempt++ {
		var err error
		if head, err = j.readHead(ctx, id); err != nil {
			return err
		}
		if !head.DeletedAt.IsZero() {
			return head.deleted()
		}
		if err := j.needsExpiry(ctx, removal); err != nil {
			return err
		}
		if before <= head.TruncatedBefore {
			break // it may have ended early; what is left below is removed again
		}
		if head.Snapshot == nil || head.Snapshot.Number+1 < before {
			return fmt.Errorf("%w: store one that is of event %d or later first", ErrNotCovered, before-1)
		}
		err = j.updateHead(ctx, head, "SET #t = :t", attributeNames("#t", attrTruncatedBefore), item{":t": numberValue(before)})
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
	return j.removeEvents(ctx, id, max(before, head.TruncatedBefore), removal)
}

// Delete removes an aggregate for good: state, redundant snapshots and events. The head stays as a
// tombstone with the number of the last event, so that no number is used twice, and reading or
// writing the aggregate returns a [*DeletedError]. The ids of its commands stay too. A program of
// the event-store-adapter family does not know tombstones: if it has loaded the aggregate, it
// continues to write.
//
// Expected is the version on which the decision to delete was made. Consumer groups are not
// informed: store an event that says so first, and give them time to read it with [Removal].After.
//
// For costs, and what to do after an error, see [Journal.Truncate]. An aggregate that is a
// tombstone already is not an error: Delete removes what is left of it.
//
// Errors: with nothing removed [ErrConflict], [ErrNotFound], *aggregate.InvalidIDError,
// [*CorruptItemError] of the head and [*ConfigError] for a [Removal].After without time to live; at
// any time [ErrThrottled], [ErrTableMissing], [ErrAccess], the context's.
func (j *Journal) Delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error {
	return j.engine.Delete(ctx, id, expected, removal)
}

func (j *engine) Delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error {
	if err := j.delete(ctx, id, expected, removal); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

func (j *engine) delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error {
	if err := id.Validate(); err != nil {
		return err
	}
	head, err := j.readHead(ctx, id)
	if err != nil {
		return err
	}
	if head.Version != expected {
		return &ConflictError{ID: id, Expected: expected, Actual: head.Version}
	}
	if err := j.needsExpiry(ctx, removal); err != nil {
		return err
	}
	if head.DeletedAt.IsZero() {
		update := "SET #t = :t, #d = :d, #n = :n REMOVE #p, #g, #s, #e, #r"
		names := attributeNames("#t", attrTruncatedBefore, "#d", attrDeletedAt, "#p", j.config.Attributes.Payload,
			"#n", attrSnapshotNumber, "#g", attrSnapshotDigest, "#s", attrSnapshotSchema, "#e", attrEncoding, "#r", attrRedundant)
		values := item{":t": numberValue(head.Version + 1), ":d": numberValue(j.config.Now().UnixMilli()), ":n": numberValue(uint64(noSnapshot))}
		if err := j.updateHead(ctx, head, update, names, values); err != nil {
			return err
		}
	}
	if err := j.removeStates(ctx, id); err != nil {
		return err
	}
	return j.removeEvents(ctx, id, head.Version+1, removal)
}

// updateHead changes a head that nobody has moved since it was read, and sets :t as the place of
// truncation #t. The SDK repeats it when a reply was lost; a condition that is false because an
// earlier attempt was written is no conflict for the callers, who read again.
func (j *engine) updateHead(ctx context.Context, head Head, update string, names map[string]string, values item) error {
	names["#v"], names["#deleted"] = j.config.Attributes.Version, attrDeletedAt
	values[":v"] = numberValue(head.Version)
	err := j.updateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        &j.config.Tables.Snapshot,
		Key:              j.key(head.Aggregate, 0),
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
		return dynamo.Explain(err, j.config.Tables.Snapshot)
	}
	now, err := j.headOf(head.Aggregate, failed.Item)
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
func (j *engine) removeStates(ctx context.Context, id aggregate.ID) error {
	table := j.config.Tables.Snapshot
	return j.eachRow(ctx, table, id, func(rows []row) error {
		var keys []item
		for _, r := range rows {
			if r.number > 0 {
				keys = append(keys, j.key(id, r.number))
			}
		}
		if j.config.Layout == Lean {
			keys = append(keys, j.stateKey(id))
		}
		return j.deleteAll(ctx, table, keys)
	})
}

func (j *engine) removeEvents(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	table, expires, removed := j.config.Tables.Journal, j.config.Now().Add(removal.After), 0
	return j.eachRow(ctx, table, id, func(rows []row) error {
		var keys []item
		for _, r := range rows {
			// By an earlier call, and not for longer.
			marked := removal.After > 0 && r.expires > 0 && r.expires <= uint64(expires.Unix())
			if r.number < before && !marked {
				keys = append(keys, j.key(id, r.number))
			}
		}
		remove := j.deleteAll
		if removal.After > 0 {
			remove = func(ctx context.Context, table string, keys []item) error {
				return j.expireAll(ctx, table, keys, expires)
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
}

// row is what removal needs to know of an item. Number is 0 for a head.
type row struct{ number, expires uint64 }

// eachRow returns the numbered rows of an aggregate page by page, in the order of their keys' text.
func (j *engine) eachRow(ctx context.Context, table string, id aggregate.ID, do func([]row) error) error {
	a := j.config.Attributes
	return j.numbered(ctx, table, id, []string{a.SortKey, a.TTL}, func(items []numberedItem) error {
		rows := make([]row, len(items))
		for i, it := range items {
			expires, _ := uintOf(it.item[a.TTL])
			rows[i] = row{it.number, expires}
		}
		return do(rows)
	})
}

// expireAll sets a time to live on items, 16 requests at a time, as no batch request can do that. It
// does not create an item again that is already gone.
func (j *engine) expireAll(ctx context.Context, table string, keys []item, at time.Time) error {
	updates, ctx := errgroup.WithContext(ctx)
	updates.SetLimit(expiresAtOnce)
	for _, key := range keys {
		updates.Go(func() error {
			err := j.updateItem(ctx, &dynamodb.UpdateItemInput{
				TableName:                 &table,
				Key:                       key,
				UpdateExpression:          aws.String("SET #ttl = :at"),
				ConditionExpression:       aws.String("attribute_exists(#pk)"),
				ExpressionAttributeNames:  attributeNames("#ttl", j.config.Attributes.TTL, "#pk", j.config.Attributes.PartitionKey),
				ExpressionAttributeValues: item{":at": numberValue(at.Unix())},
			})
			if errors.As(err, new(*types.ConditionalCheckFailedException)) {
				return nil
			}
			return dynamo.Explain(err, table)
		})
	}
	return updates.Wait()
}

// updateItem is sent again while a transaction is under way on the item, which the SDK does not do.
func (j *engine) updateItem(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(j.config.RetryBudget))
	for {
		_, err := j.client.UpdateItem(ctx, in)
		var conflict *types.TransactionConflictException
		if !errors.As(err, &conflict) {
			return err
		}
		if !sleep(ctx, wait.NextBackOff()) {
			return errors.Join(ctx.Err(), err)
		}
	}
}
