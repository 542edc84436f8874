package classic

import (
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
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Attributes that Millrace adds to the head of an aggregate that was truncated or deleted.
const (
	attrTruncatedBefore = "truncated_before"
	attrDeletedAt       = "deleted_at"
)

// noSnapshot is the number of the snapshot on a tombstone: it is higher than every version.
const noSnapshot = math.MaxUint64

func (l *layout) Head(ctx context.Context, id aggregate.ID) (journaltype.Head, error) {
	it, err := l.GetItem(ctx, l.Config.Tables.Snapshot, l.key(id, 0))
	if err != nil {
		return journaltype.Head{}, err
	}
	return l.headOf(id, it)
}

func (l *layout) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	a := l.Config.Attributes
	out, err := l.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:                &l.Config.Tables.Snapshot,
		Key:                      l.key(id, 0),
		ConsistentRead:           aws.Bool(true),
		ProjectionExpression:     aws.String("#pk, #sk, #v, #d"),
		ExpressionAttributeNames: table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#v", a.Version, "#d", attrDeletedAt),
	})
	if err != nil {
		return 0, dynamo.Explain(err, l.Config.Tables.Snapshot)
	}
	head, err := l.headOf(id, out.Item)
	if err == nil && !head.DeletedAt.IsZero() {
		err = engine.DeletedErrorOf(head)
	}
	if err != nil {
		return 0, err
	}
	return head.Version, nil
}

// headOf decodes the row of a head. The row is nil if the aggregate has no head.
func (l *layout) headOf(id aggregate.ID, it table.Item) (journaltype.Head, error) {
	if it == nil {
		return journaltype.Head{}, fmt.Errorf("%w: %q of type %q has no events", journaltype.ErrNotFound, id.Value, id.Type)
	}
	version, ok := table.UintOf(it[l.Config.Attributes.Version])
	if !ok || version == 0 {
		partition, sort := l.KeysOf(it)
		return journaltype.Head{}, &journaltype.CorruptItemError{
			Aggregate: id, Table: l.Config.Tables.Snapshot, PartitionKey: partition, SortKey: sort,
			Reason: "has no version from 1 on in " + l.Config.Attributes.Version,
		}
	}
	head := journaltype.Head{Aggregate: id, Version: version, Redundant: table.NumbersOf(it[attrRedundant])}
	head.TruncatedBefore, _ = table.UintOf(it[attrTruncatedBefore])
	if millis, ok := table.IntOf(it[attrDeletedAt]); ok {
		head.DeletedAt = time.UnixMilli(millis).UTC()
	}
	// Numbers beyond the version belong to a history that was replaced.
	head.Redundant = slices.DeleteFunc(head.Redundant, func(n uint64) bool { return n > version })
	engine.SetSnapshot(&head, l.snapshotOf(it))
	return head, nil
}

// headItem returns the head as a commit leaves it, without a snapshot and without attributes of
// other programs.
func (l *layout) headItem(c *storage.Commit) table.Item {
	a := l.Config.Attributes
	it := l.key(c.Aggregate, 0)
	it[a.AggregateID] = table.StringValue(c.Aggregate.String())
	it[a.SequenceNumber] = table.NumberValue(0)
	it[a.Version] = table.NumberValue(c.Version())
	it[a.TTL] = table.NumberValue(0)
	return it
}

// writeHead returns the action on the head. It updates the version under the condition that the
// stored version is the expected one, and stores the snapshot that addSnapshot put into head.
func (l *layout) writeHead(c *storage.Commit, head table.Item) types.TransactWriteItem {
	if len(c.Events) == 0 {
		return l.checkVersion(c)
	}
	if c.Expected == 0 {
		return l.PutNew(l.Config.Tables.Snapshot, head)
	}
	// A head that was restored may have a snapshot that is ahead of it; see adaptToHead. The
	// condition is true if there is no snapshot. It is false for a tombstone, which has the number
	// noSnapshot. So no other term is needed, and each term costs capacity.
	condition := "#v = :expected AND NOT #n > :expected"
	names := table.AttributeNames("#v", l.Config.Attributes.Version, "#n", attrSnapshotNumber)
	values := table.Item{":expected": table.NumberValue(c.Expected)}
	if c.Snapshot != nil {
		condition += " AND (attribute_not_exists(#t) OR NOT #s > :s)"
		names["#t"] = attrTruncatedBefore
	}
	return l.updateOfHead(c, head, condition, names, values)
}

func (l *layout) updateOfHead(c *storage.Commit, head table.Item, condition string, names map[string]string, values table.Item, remove ...string) types.TransactWriteItem {
	a := l.Config.Attributes
	sets := []string{"#v = :next"}
	values[":next"] = head[a.Version]
	if c.Snapshot != nil {
		sets = append(sets, "#n = :n", "#g = :g", "#s = :s")
		names["#n"], names["#g"], names["#s"] = attrSnapshotNumber, attrSnapshotDigest, attrSnapshotSchema
		values[":n"], values[":g"], values[":s"] = head[attrSnapshotNumber], head[attrSnapshotDigest], head[attrSnapshotSchema]
		sets = append(sets, "#p = :p")
		names["#p"], values[":p"] = a.Payload, head[a.Payload]
		names["#e"] = engine.AttrEncoding
		if encoding, ok := head[engine.AttrEncoding]; ok {
			sets, values[":e"] = append(sets, "#e = :e"), encoding
		} else {
			remove = append(remove, "#e") // the encoding of the earlier snapshot
		}
	}
	if list, ok := head[attrRedundant]; ok {
		names["#r"], values[":r"] = attrRedundant, list
		if c.Redundancy.Listed == nil {
			sets = append(sets, "#r = list_append(if_not_exists(#r, :none), :r)")
			values[":none"] = table.ListValue(nil)
		} else {
			sets = append(sets, "#r = :r")
		}
	}
	update := "SET " + strings.Join(sets, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           &l.Config.Tables.Snapshot,
		Key:                                 l.key(c.Aggregate, 0),
		UpdateExpression:                    &update,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// versionCondition is true if the head has the expected version and is not a tombstone. For version
// 0 it is true if there is no head.
func (l *layout) versionCondition(c *storage.Commit) (condition string, names map[string]string, values table.Item) {
	if c.Expected == 0 {
		return "attribute_not_exists(#pk)", table.AttributeNames("#pk", l.Config.Attributes.PartitionKey), nil
	}
	return "#v = :expected AND attribute_not_exists(#d)",
		table.AttributeNames("#v", l.Config.Attributes.Version, "#d", attrDeletedAt),
		table.Item{":expected": table.NumberValue(c.Expected)}
}
