package packed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Items of commits stay when their events are removed. A stale writer, or a writer whose reply was
// lost, finds out from them whether its own commit was written.

// errNoExpiry returns the error for a removal that should wait for a time to live.
func errNoExpiry() error {
	return &journaltype.ConfigError{Field: "RemoveOptions.After", Reason: "is set, but in the packed layout commits have no time to live: " +
		"leave it 0, and remove the events when all groups have read them"}
}

func (p *layout) Truncate(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error {
	if options.After > 0 {
		return errNoExpiry()
	}
	end, err := p.end(ctx, id)
	if err != nil {
		return err
	}
	if end.isTombstone() {
		return end.deletedError()
	}
	if before <= 1 {
		return nil // there are no events before the first
	}
	latest, base, err := p.snapshots(ctx, id)
	if err != nil {
		return err
	}
	if latest != nil && !latest.deleted.IsZero() {
		return p.deletedSince(ctx, id)
	}
	// A base of a history that was replaced stands for nothing.
	sound := false
	if base != nil && base.snapshot != nil {
		if sound, err = p.isSound(ctx, id, base); err != nil {
			return err
		}
	}
	if sound && base.before >= before {
		// An earlier call may have ended early.
		return p.blankRest(ctx, id, base.before, options)
	}
	if err := p.pin(ctx, id, before, latest, base); err != nil {
		return err
	}
	return p.blank(ctx, id, before, options)
}

// pin stores the snapshot that will stand for the removed events, with its command ids, in a row
// that only a later truncation replaces.
func (p *layout) pin(ctx context.Context, id aggregate.ID, before uint64, rows ...*snapshotRow) error {
	for _, row := range rows {
		if row == nil || row.snapshot == nil || row.snapshot.Number+1 < before {
			continue
		}
		sound, err := p.isSound(ctx, id, row)
		if err != nil {
			return err
		}
		if !sound {
			continue
		}
		it := p.rowOf(p.snapshotKey(id, baseSnapshot), row.snapshot, row.from, row.commit)
		it[attrBefore] = table.NumberValue(before)
		if row.encoded != nil {
			it[attrID] = row.encoded
		}
		if row.guards {
			it[attrGuards] = &types.AttributeValueMemberBOOL{Value: true}
		}
		return p.putBase(ctx, id, it)
	}
	return engine.NotCovered(before)
}

// putBase stores the snapshot that stands for truncated events, unless a later truncation has
// stored one that covers them too. It does not store anything for a deleted aggregate.
func (p *layout) putBase(ctx context.Context, id aggregate.ID, it table.Item) error {
	p.compressState(it)
	put := &types.Put{
		TableName:                           &p.Config.Tables.Snapshot,
		Item:                                it,
		ConditionExpression:                 aws.String("attribute_not_exists(#b) OR #b < :b"),
		ExpressionAttributeNames:            table.AttributeNames("#b", attrBefore),
		ExpressionAttributeValues:           table.Item{":b": it[attrBefore]},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	wait := p.Patience()
	for {
		err := p.Transact(ctx, types.TransactWriteItem{Put: put}, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName:                &p.Config.Tables.Snapshot,
			Key:                      p.snapshotKey(id, latestSnapshot),
			ConditionExpression:      aws.String("attribute_not_exists(#d)"),
			ExpressionAttributeNames: table.AttributeNames("#d", attrDeleted),
		}})
		if _, deleted := table.RefusedItem(err, 1); deleted {
			return p.deletedSince(ctx, id)
		}
		stored, refused := table.RefusedItem(err, 0)
		if !refused {
			return dynamo.Explain(err, p.Config.Tables.Snapshot)
		}
		if stored == nil { // the row was removed since: the aggregate is being deleted
			return p.deletedSince(ctx, id)
		}
		there, err := p.snapshotOf(stored)
		if err != nil {
			return err
		}
		before, _ := table.UintOf(it[attrBefore])
		if there.snapshot != nil && there.before >= before {
			if sound, err := p.isSound(ctx, id, there); sound || err != nil {
				return err
			}
		}
		// The stored snapshot belongs to a history that was replaced, or another truncation has
		// replaced the row meanwhile.
		put.ConditionExpression, put.ExpressionAttributeNames = aws.String("#b = :b AND #c = :c"), table.AttributeNames("#b", attrBefore, "#c", attrCommit)
		put.ExpressionAttributeValues = table.Item{":b": stored[attrBefore], ":c": stored[attrCommit]}
		if !retry.Sleep(ctx, wait.NextBackOff()) {
			return cmp.Or(ctx.Err(), journaltype.ErrContended)
		}
	}
}

func (p *layout) Delete(ctx context.Context, id aggregate.ID, expected uint64, options journaltype.RemoveOptions) error {
	if options.After > 0 {
		return errNoExpiry()
	}
	end, err := p.end(ctx, id)
	if err != nil {
		return err
	}
	if end.last() != expected {
		return &journaltype.ConflictError{ID: id, Expected: expected, Actual: end.last()}
	}
	if !end.isTombstone() {
		if err := p.bury(ctx, id, expected); err != nil {
			return err
		}
	}
	if err := p.buryStates(ctx, id); err != nil {
		return err
	}
	return p.blank(ctx, id, expected+1, options)
}

// bury puts the tombstone in the place of the next commit.
func (p *layout) bury(ctx context.Context, id aggregate.ID, version uint64) error {
	stone := p.key(id, version+1)
	stone[attrCommit] = commitValue(p.Config.NewID())
	stone[attrCount] = table.NumberValue(0)
	stone[attrDeleted] = table.NumberValue(p.Config.Now().UnixMilli())
	in := table.Alone(p.PutNew(p.Config.Tables.Journal, stone))
	last := time.Now().Add(p.Config.RetryBudget)
	for {
		err := p.PutItem(ctx, in)
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) {
			return dynamo.Explain(err, p.Config.Tables.Journal)
		}
		there, err := p.parse(failed.Item)
		switch {
		case err != nil:
			return err
		case there.isTombstone():
			return nil // written by an earlier attempt, or by another process
		case !there.isPlaceholder():
			return &journaltype.ConflictError{ID: id, Expected: version, Actual: there.last()}
		}
		takeOver(stone, failed.Item)
		in.ConditionExpression, in.ExpressionAttributeNames = aws.String("#c = :c"), table.AttributeNames("#c", attrCommit)
		in.ExpressionAttributeValues = table.Item{":c": failed.Item[attrCommit]}
		if time.Now().After(last) || !retry.Sleep(ctx, rand.N(table.SendAgainPause)) {
			return fmt.Errorf("delete %s, nothing removed: %w", id, cmp.Or(ctx.Err(), journaltype.ErrContended))
		}
	}
}

// buryStates removes all snapshots and leaves a tombstone, which a late snapshot does not replace.
// It keeps the command ids.
func (p *layout) buryStates(ctx context.Context, id aggregate.ID) error {
	name := p.Config.Tables.Snapshot
	var before map[string]types.AttributeValue
	err := p.WhileUnderWay(ctx, func() error {
		out, err := p.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:        &name,
			Key:              p.snapshotKey(id, latestSnapshot),
			UpdateExpression: aws.String("SET #n = :most, #d = :now REMOVE #s, #v, #x, #r"),
			ExpressionAttributeNames: table.AttributeNames("#n", attrCount, "#d", attrDeleted, "#s", attrState, "#v", attrSchema,
				"#x", attrApplied, "#r", attrKept),
			ExpressionAttributeValues: table.Item{":most": table.NumberValue(uint64(noMoreSnapshots)), ":now": table.NumberValue(p.Config.Now().UnixMilli())},
			ReturnValues:              types.ReturnValueUpdatedOld,
		})
		if err == nil {
			before = out.Attributes
		}
		return err
	})
	if err != nil {
		return dynamo.Explain(err, name)
	}
	// Rows beside the latest snapshot that a transaction may still be writing.
	late := []string{strconv.Itoa(baseSnapshot)}
	for _, n := range table.NumbersOf(before[attrKept]) {
		late = append(late, strconv.FormatUint(n, 10))
	}
	pages := dynamodb.NewQueryPaginator(p.Client, &dynamodb.QueryInput{
		TableName: &name, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ProjectionExpression:      aws.String("#pk, #sk"),
		ExpressionAttributeNames:  table.AttributeNames("#pk", p.Config.Attributes.PartitionKey, "#sk", p.Config.Attributes.SortKey),
		ExpressionAttributeValues: table.Item{":pk": table.StringValue(partitionOf(id))},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return dynamo.Explain(err, name)
		}
		var keys []table.Item
		for _, key := range page.Items {
			_, number := p.placeOf(key)
			if number != strconv.Itoa(latestSnapshot) {
				keys = append(keys, key)
			}
			late = slices.DeleteFunc(late, func(other string) bool { return other == number })
		}
		if err := p.DeleteAll(ctx, name, keys); err != nil {
			return err
		}
	}
	keys := make([]table.Item, len(late))
	for i, number := range late {
		keys[i] = p.keyIn(partitionOf(id), number)
	}
	return p.DeleteLate(ctx, name, keys)
}
