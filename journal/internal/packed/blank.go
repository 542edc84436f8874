package packed

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"

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

// An item without its events is a blank. The first item holds two numbers. Events before attrBefore
// may be missing. No item that ends before attrBlank has events. Blanks stay forever, so a removal
// begins to read at attrBlank: otherwise each one would read all blanks again. The second number is
// written after the removal. An interrupted removal leaves it as it was, and the next one reads
// what the interrupted one should have removed.

// blanksAtOnce is the number of items whose events are removed at the same time.
const blanksAtOnce = 16

// blanking removes the events of the items of an aggregate that end before a number.
type blanking struct {
	*layout
	id      aggregate.ID
	before  uint64
	options journaltype.RemoveOptions

	// first is the first item, if it has events to remove. It is the last one to lose them.
	first             *item
	removed, reported int
}

// blank removes the events of the items that end before a number, after recording this number on
// the first item.
func (p *layout) blank(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error {
	from, err := p.announce(ctx, id, before)
	if err != nil || from >= before {
		return err
	}
	b := &blanking{layout: p, id: id, before: before, options: options}
	wait := table.UntilShown()
	for {
		done, gap, err := b.pass(ctx, from)
		switch {
		case err != nil:
			return err
		case !gap:
			return b.finish(ctx, from, done)
		case !retry.Sleep(ctx, wait.NextBackOff()):
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return b.finish(ctx, from, from)
		}
	}
}

// blankRest does the same for a number that an earlier call has stored. It writes nothing if that
// call has removed everything.
func (p *layout) blankRest(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error {
	first, err := p.GetItem(ctx, p.Config.Tables.Journal, p.key(id, 1))
	if err != nil {
		return err
	}
	if done, _ := table.UintOf(first[attrBlank]); done >= before {
		return nil
	}
	return p.blank(ctx, id, before, options)
}

// announce records on the first item that events before a number may be missing. It returns the
// number from which items may have events.
func (p *layout) announce(ctx context.Context, id aggregate.ID, before uint64) (from uint64, err error) {
	name := p.Config.Tables.Journal
	var stored table.Item
	err = p.WhileUnderWay(ctx, func() error {
		out, err := p.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:           &name,
			Key:                 p.key(id, 1),
			UpdateExpression:    aws.String("SET #b = :b, #m = if_not_exists(#m, :one)"),
			ConditionExpression: aws.String("attribute_exists(#pk) AND (attribute_not_exists(#b) OR #b < :b)"),
			ExpressionAttributeNames: table.AttributeNames(
				"#b", attrBefore, "#m", attrBlank, "#pk", p.Config.Attributes.PartitionKey),
			ExpressionAttributeValues:           table.Item{":b": table.NumberValue(before), ":one": table.NumberValue(1)},
			ReturnValues:                        types.ReturnValueUpdatedNew, // without the events
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		if err == nil {
			stored = out.Attributes
		}
		return err
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		stored, err = refused.Item, nil
	}
	from, _ = table.UintOf(stored[attrBlank])
	return max(from, 1), dynamo.Explain(err, name)
}

// pass removes the events of the items from a number on, except those of the first item. It returns
// the first number after the items that have none. It returns gap true if an item that must exist
// is not visible: a transaction that writes one item after the other is under way.
func (b *blanking) pass(ctx context.Context, from uint64) (done uint64, gap bool, err error) {
	var due []*item
	pending := uint64(0)
	done = from
	err = b.query(ctx, b.id, strconv.FormatUint(from, 10), strconv.FormatUint(b.before-1, 10), func(in *dynamodb.QueryInput) {
		b.withoutEvents(in)
		in.ProjectionExpression = aws.String(*in.ProjectionExpression + ", #p")
		in.ExpressionAttributeNames["#p"] = attrTail
	}, func(it *item, err error) error {
		if err != nil {
			return err
		}
		gap = gap || it.first > done
		if it.last() >= b.before {
			return nil // some of its events stay
		}
		done = it.last() + 1
		switch {
		case !it.tailed:
			return nil // its events are removed already
		case it.first == 1:
			b.first = it
			return nil
		}
		due = append(due, it)
		if pending += it.count; pending < engine.RemovesBetweenReports {
			return nil
		}
		pending = 0
		if err := b.blankAll(ctx, due); err != nil {
			return err
		}
		b.report()
		due = nil
		return nil
	})
	if err != nil {
		return done, gap, err
	}
	return done, gap, b.blankAll(ctx, due)
}

func (b *blanking) blankAll(ctx context.Context, items []*item) error {
	updates, within := errgroup.WithContext(ctx)
	updates.SetLimit(blanksAtOnce)
	for _, it := range items {
		updates.Go(func() error { return b.update(within, it.number, removeEvents, 0) })
	}
	err := updates.Wait()
	for _, it := range items {
		b.removed += int(it.count) //nolint:gosec // an item has few
	}
	return err
}

func (b *blanking) report() {
	if b.removed > b.reported && b.options.Progress != nil {
		b.options.Progress(b.removed)
		b.reported = b.removed
	}
}

// finish removes the events of the first item, and records on it from where the next removal reads.
func (b *blanking) finish(ctx context.Context, from, done uint64) error {
	change := ""
	if done > from {
		change = "SET #m = :m "
	}
	if b.first != nil {
		change += removeEvents
		b.removed += int(b.first.count) //nolint:gosec // an item has few
	}
	if change != "" {
		if err := b.update(ctx, "1", change, done); err != nil {
			return err
		}
	}
	b.report()
	return nil
}

const removeEvents = "REMOVE #e, #E, #p, #z"

// update changes an item. It does not lower attrBlank, which another removal may have raised.
func (b *blanking) update(ctx context.Context, number, change string, done uint64) error {
	in := &dynamodb.UpdateItemInput{
		TableName:                &b.Config.Tables.Journal,
		Key:                      b.keyIn(partitionOf(b.id), number),
		UpdateExpression:         &change,
		ConditionExpression:      aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames: table.AttributeNames("#pk", b.Config.Attributes.PartitionKey),
	}
	if strings.Contains(change, removeEvents) {
		maps.Copy(in.ExpressionAttributeNames, table.AttributeNames("#e", attrSmall, "#E", attrLarge, "#p", attrTail, "#z", attrSize))
	}
	if strings.Contains(change, ":m") {
		*in.ConditionExpression += " AND (attribute_not_exists(#m) OR #m < :m)"
		in.ExpressionAttributeNames["#m"] = attrBlank
		in.ExpressionAttributeValues = table.Item{":m": table.NumberValue(done)}
	}
	err := b.UpdateItem(ctx, in)
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return nil
	}
	return dynamo.Explain(err, b.Config.Tables.Journal)
}
