package journal

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Attributes of ours on the head of an aggregate that was truncated or deleted.
const (
	attrTruncatedBefore = "truncated_before"
	attrDeletedAt       = "deleted_at"
)

// noSnapshot is the snapshot's number on a tombstone: beyond all versions.
const noSnapshot = math.MaxUint64

// Head is the one row of an aggregate that every commit updates.
type Head struct {
	Aggregate aggregate.ID
	// Version equals the sequence number of the last event.
	Version uint64
	// Snapshot is nil when there is no state.
	Snapshot *Snapshot
	// Redundant are the numbers of the redundant snapshots, in ascending order. Repositories store
	// them for loads of earlier versions.
	Redundant []uint64
	// TruncatedBefore, if not 0, says that events with lower numbers are removed, or soon will be;
	// see [Journal.Truncate].
	TruncatedBefore uint64
	// DeletedAt is not zero when the head is a tombstone; see [Journal.Delete].
	DeletedAt time.Time
}

// Head returns the head of an aggregate with its latest snapshot, strongly consistent: one round
// trip, and one read unit for each 4 KB of state; in the lean layout one more unit, as the state
// has a row of its own. It also returns the head of a deleted aggregate. [Journal.Version] returns
// the version alone, and needs no encryption key.
//
// Errors: [ErrNotFound], [*CorruptItemError], [*EncodingError], [ErrKeyDestroyed],
// [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError.
func (j *Journal) Head(ctx context.Context, id aggregate.ID) (Head, error) {
	return j.engine.Head(ctx, id)
}

func (j *engine) Head(ctx context.Context, id aggregate.ID) (Head, error) {
	if err := id.Validate(); err != nil {
		return Head{}, err
	}
	head, err := j.readHead(ctx, id)
	if err != nil {
		return Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	if head.Snapshot, err = j.decodeSnapshot(ctx, id, head.Snapshot); err != nil {
		return Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	return head, nil
}

// readHead leaves the snapshot's payload as it is stored.
func (j *engine) readHead(ctx context.Context, id aggregate.ID) (Head, error) {
	if j.config.Layout == Lean {
		return j.readLeanHead(ctx, id)
	}
	it, err := j.getItem(ctx, j.config.Tables.Snapshot, j.key(id, 0))
	if err != nil {
		return Head{}, err
	}
	return j.headOf(id, it)
}

// readLeanHead reads head and state side by side. Where that shows a commit or a truncation in
// part, which may last, both are read in a transaction.
func (j *engine) readLeanHead(ctx context.Context, id aggregate.ID) (Head, error) {
	table, keys := j.config.Tables.Snapshot, []item{j.key(id, 0), j.stateKey(id)}
	items, err := j.batchGetKeys(ctx, table, keys)
	if err != nil {
		return Head{}, err
	}
	head, torn, err := j.leanHeadOf(id, items)
	if !torn {
		return head, err
	}
	if items, err = j.transactGet(ctx, table, keys); err != nil {
		return Head{}, err
	}
	head, _, err = j.leanHeadOf(id, items)
	return head, err
}

// leanHeadOf puts head and state together. They are torn when the head refers to another state than
// there is.
func (j *engine) leanHeadOf(id aggregate.ID, items []item) (head Head, torn bool, err error) {
	var row, state item
	_, stateSort := j.keysOf(j.stateKey(id))
	for _, it := range items {
		if _, sort := j.keysOf(it); sort == stateSort {
			state = it
		} else {
			row = it
		}
	}
	head, err = j.headOf(id, row)
	if err != nil {
		return head, row == nil && state != nil, err
	}
	if !head.DeletedAt.IsZero() {
		return head, false, nil // its state is yet to be removed, or is not there
	}
	marked, _ := bytesOf(row[attrSnapshotDigest])
	number, _ := uintOf(row[attrSnapshotNumber])
	snapshot := j.snapshotOf(state)
	switch {
	case snapshot == nil:
		return head, marked != nil, nil
	case snapshot.Number == 0 || snapshot.Number != number || !bytes.Equal(marked, digest(snapshot.Payload)):
		return head, true, nil
	}
	head.setSnapshot(snapshot)
	return head, false, nil
}

// setSnapshot leaves out one that is ahead of the head, which was put back: it is of a history that
// is no more. The next commit removes it; see refit.
func (h *Head) setSnapshot(s *Snapshot) {
	if s != nil && s.Number <= h.Version {
		h.Snapshot = s
	}
}

// Version returns how many events an aggregate has, strongly consistent: one round trip with a
// small reply. It costs as much as [Journal.Head], because DynamoDB bills the whole item; in the
// lean layout one read unit.
//
// Errors: [*DeletedError] and those of Head.
func (j *Journal) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	return j.engine.Version(ctx, id)
}

func (j *engine) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	out, err := j.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:                &j.config.Tables.Snapshot,
		Key:                      j.key(id, 0),
		ConsistentRead:           aws.Bool(true),
		ProjectionExpression:     aws.String("#pk, #sk, #v, #d"),
		ExpressionAttributeNames: attributeNames("#pk", j.config.Attributes.PartitionKey, "#sk", j.config.Attributes.SortKey, "#v", j.config.Attributes.Version, "#d", attrDeletedAt),
	})
	if err != nil {
		return 0, fmt.Errorf("read version of %s: %w", id, dynamo.Explain(err, j.config.Tables.Snapshot))
	}
	head, err := j.headOf(id, out.Item)
	if err == nil && !head.DeletedAt.IsZero() {
		err = head.deleted()
	}
	if err != nil {
		return 0, fmt.Errorf("read version of %s: %w", id, err)
	}
	return head.Version, nil
}

func (h Head) deleted() error {
	return &DeletedError{ID: h.Aggregate, Version: h.Version, At: h.DeletedAt}
}

// headOf reads the head's own row, which is nil where there is none.
func (j *engine) headOf(id aggregate.ID, it item) (Head, error) {
	if it == nil {
		return Head{}, fmt.Errorf("%w: %q of type %q has no events", ErrNotFound, id.Value, id.Type)
	}
	version, ok := uintOf(it[j.config.Attributes.Version])
	if !ok || version == 0 {
		partition, sort := j.keysOf(it)
		return Head{}, &CorruptItemError{
			Aggregate: id, Table: j.config.Tables.Snapshot, PartitionKey: partition, SortKey: sort,
			Reason: "has no version from 1 on in " + j.config.Attributes.Version,
		}
	}
	head := Head{Aggregate: id, Version: version, Redundant: numbersOf(it[attrRedundant])}
	head.TruncatedBefore, _ = uintOf(it[attrTruncatedBefore])
	if millis, ok := intOf(it[attrDeletedAt]); ok {
		head.DeletedAt = time.UnixMilli(millis).UTC()
	}
	head.Redundant = slices.DeleteFunc(head.Redundant, func(n uint64) bool { return n > version }) // also of such a history
	head.setSnapshot(j.snapshotOf(it))
	return head, nil
}

// headItem is the head as a commit leaves it, without a snapshot and without what foreign writers
// may have added.
func (j *engine) headItem(c *commit) item {
	a := j.config.Attributes
	it := j.key(c.Aggregate, 0)
	it[a.AggregateID] = stringValue(c.Aggregate.String())
	it[a.SequenceNumber] = numberValue(0)
	it[a.Version] = numberValue(c.Version())
	it[a.TTL] = numberValue(0)
	return it
}

// writeHead is the head's part of a commit: it moves the version under the
// condition that it is the expected one, and stores what addSnapshot has put there.
func (j *engine) writeHead(c *commit, head item) types.TransactWriteItem {
	if len(c.Events) == 0 {
		return j.checkVersion(c)
	}
	if c.Expected == 0 {
		return j.putNew(j.config.Tables.Snapshot, head)
	}
	// A head that was put back may have a snapshot that is ahead of it; see refit. The condition is
	// true where there is no snapshot, and false of a tombstone, which has the number of none; so
	// it need not say more, and each word costs.
	condition := "#v = :expected AND NOT #n > :expected"
	names := attributeNames("#v", j.config.Attributes.Version, "#n", attrSnapshotNumber)
	values := item{":expected": numberValue(c.Expected)}
	if c.Snapshot != nil {
		condition += " AND (attribute_not_exists(#t) OR NOT #s > :s)"
		names["#t"] = attrTruncatedBefore
	}
	return j.updateOfHead(c, head, condition, names, values)
}

func (j *engine) updateOfHead(c *commit, head item, condition string, names map[string]string, values item, remove ...string) types.TransactWriteItem {
	a := j.config.Attributes
	sets := []string{"#v = :next"}
	values[":next"] = head[a.Version]
	if c.Snapshot != nil {
		sets = append(sets, "#n = :n", "#g = :g", "#s = :s")
		names["#n"], names["#g"], names["#s"] = attrSnapshotNumber, attrSnapshotDigest, attrSnapshotSchema
		values[":n"], values[":g"], values[":s"] = head[attrSnapshotNumber], head[attrSnapshotDigest], head[attrSnapshotSchema]
		if j.config.Layout != Lean {
			sets = append(sets, "#p = :p")
			names["#p"], values[":p"] = a.Payload, head[a.Payload]
			names["#e"] = attrEncoding
			if encoding, ok := head[attrEncoding]; ok {
				sets, values[":e"] = append(sets, "#e = :e"), encoding
			} else {
				remove = append(remove, "#e") // that of the snapshot before
			}
		}
	}
	if list, ok := head[attrRedundant]; ok {
		names["#r"], values[":r"] = attrRedundant, list
		if c.Redundancy.Listed == nil {
			sets = append(sets, "#r = list_append(if_not_exists(#r, :none), :r)")
			values[":none"] = listValue(nil)
		} else {
			sets = append(sets, "#r = :r")
		}
	}
	update := "SET " + strings.Join(sets, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           &j.config.Tables.Snapshot,
		Key:                                 j.key(c.Aggregate, 0),
		UpdateExpression:                    &update,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// versionCondition is that the head has the expected version and is no tombstone, or for version 0
// that there is none.
func (j *engine) versionCondition(c *commit) (condition string, names map[string]string, values item) {
	if c.Expected == 0 {
		return "attribute_not_exists(#pk)", attributeNames("#pk", j.config.Attributes.PartitionKey), nil
	}
	return "#v = :expected AND attribute_not_exists(#d)",
		attributeNames("#v", j.config.Attributes.Version, "#d", attrDeletedAt),
		item{":expected": numberValue(c.Expected)}
}
