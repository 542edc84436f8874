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
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Items of commits stay when their events are removed. A stale writer, or a writer whose reply was
// lost, finds out from them whether its own commit was written.

// blanksAtOnce is the number of items whose events are removed at the same time.
const blanksAtOnce = 16

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
	if !sound || base.before < before {
		if err := p.pin(ctx, id, before, latest, base); err != nil {
			return err
		}
	} else {
		// An earlier call may have ended early. Events below base.before that are left are removed
		// again.
		before = base.before
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

// blank removes the events of the items that end before a number, after recording this number on
// the first item.
func (p *layout) blank(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error {
	name := p.Config.Tables.Journal
	err := p.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &name,
		Key:                       p.key(id, 1),
		UpdateExpression:          aws.String("SET #b = :b"),
		ConditionExpression:       aws.String("attribute_exists(#pk) AND (attribute_not_exists(#b) OR #b < :b)"),
		ExpressionAttributeNames:  table.AttributeNames("#b", attrBefore, "#pk", p.Config.Attributes.PartitionKey),
		ExpressionAttributeValues: table.Item{":b": table.NumberValue(before)},
	})
	if err != nil && !errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return dynamo.Explain(err, name)
	}
	removed, reported := 0, 0
	flush := func(due []*item) error {
		if err := p.blankAll(ctx, due); err != nil {
			return err
		}
		for _, it := range due {
			removed += int(it.count) //nolint:gosec // an item has few
		}
		if removed > reported && options.Progress != nil {
			options.Progress(removed)
			reported = removed
		}
		return nil
	}
	wait := table.UntilShown()
	for {
		gap, err := p.eachFull(ctx, id, before, flush)
		if err != nil || !gap || !retry.Sleep(ctx, wait.NextBackOff()) {
			return cmp.Or(err, ctx.Err())
		}
	}
}

// eachFull passes the items that end before a number and have events to do, some at a time. It
// returns gap true if an item that must exist is not visible: a transaction that writes one item
// after the other is under way.
func (p *layout) eachFull(ctx context.Context, id aggregate.ID, before uint64, do func([]*item) error) (gap bool, err error) {
	var due []*item
	pending, next := uint64(0), uint64(1)
	err = p.query(ctx, id, "1", strconv.FormatUint(before-1, 10), func(in *dynamodb.QueryInput) {
		p.withoutEvents(in)
		in.ProjectionExpression = aws.String(*in.ProjectionExpression + ", #p")
		in.ExpressionAttributeNames["#p"] = attrTail
	}, func(it *item, err error) error {
		if err != nil {
			return err
		}
		gap = gap || it.first > next
		next = it.last() + 1
		if it.last() >= before || !it.tailed {
			return nil // its events are removed already
		}
		due = append(due, it)
		if pending += it.count; pending < engine.RemovesBetweenReports {
			return nil
		}
		pending = 0
		some := due
		due = nil
		return do(some)
	})
	if err != nil {
		return gap, err
	}
	return gap, do(due)
}

func (p *layout) blankAll(ctx context.Context, items []*item) error {
	updates, ctx := errgroup.WithContext(ctx)
	updates.SetLimit(blanksAtOnce)
	for _, it := range items {
		updates.Go(func() error {
			err := p.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName:                &p.Config.Tables.Journal,
				Key:                      p.keyIn(it.partition, it.number),
				UpdateExpression:         aws.String("REMOVE #e, #E, #p, #z"),
				ConditionExpression:      aws.String("attribute_exists(#pk)"),
				ExpressionAttributeNames: table.AttributeNames("#e", attrSmall, "#E", attrLarge, "#p", attrTail, "#z", attrSize, "#pk", p.Config.Attributes.PartitionKey),
			})
			if errors.As(err, new(*types.ConditionalCheckFailedException)) {
				return nil
			}
			return dynamo.Explain(err, p.Config.Tables.Journal)
		})
	}
	return updates.Wait()
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
