package packed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (p *layout) Inspect(ctx context.Context, id aggregate.ID, found *storage.Inspection, each func(*journaltype.Record)) error {
	var corrupt *journaltype.CorruptItemError
	head, err := p.Head(ctx, id)
	switch {
	case errors.Is(err, journaltype.ErrNotFound):
	case errors.As(err, &corrupt):
		found.Corrupt = append(found.Corrupt, corrupt)
	case err != nil:
		return err
	default:
		found.Head = &head
	}
	row, err := p.latest(ctx, id)
	switch {
	case errors.As(err, &corrupt):
		found.Corrupt = append(found.Corrupt, corrupt)
	case err != nil:
		return err
	case row != nil && row.snapshot != nil:
		found.SnapshotNumber = row.snapshot.Number
	}
	next := uint64(1)
	return p.query(ctx, id, "1", endOfNumbers, nil, func(it *item, err error) error {
		if err != nil {
			found.Corrupt = append(found.Corrupt, engine.AsCorrupt(err))
			return nil
		}
		if it.first != next {
			found.Corrupt = append(found.Corrupt, it.corrupt(fmt.Sprintf("begins with event %d in the place of event %d", it.first, next)))
		}
		next = it.first + it.count
		records, err := p.recordsOf(it)
		if err != nil {
			found.Corrupt = append(found.Corrupt, engine.AsCorrupt(err))
		}
		for _, r := range records {
			each(r)
		}
		return nil
	})
}

func (p *layout) Strays(ctx context.Context, aggregateType string, yield func(*journaltype.CorruptItemError) bool) error {
	a, name := p.Config.Attributes, p.Config.Tables.Journal
	input := &dynamodb.ScanInput{
		TableName:                &name,
		ProjectionExpression:     aws.String("#pk, #sk, #a, #p, #n, #b, #format"),
		ExpressionAttributeNames: table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#a", attrListed, "#p", attrTail, "#n", attrCount, "#b", attrBefore, "#format", engine.AttrFormat),
	}
	if aggregateType != "" {
		input.FilterExpression = aws.String("begins_with(#pk, :type)")
		input.ExpressionAttributeValues = table.Item{":type": table.StringValue(typeKey(aggregateType) + "/")}
	}
	if err := p.knowPartitions(ctx); err != nil {
		return err
	}
	begun := "" // the last partition in which event 1 was found
	for {
		out, err := p.Client.Scan(ctx, input)
		if err != nil {
			return dynamo.Explain(err, name)
		}
		for _, it := range out.Items {
			stray, err := p.stray(ctx, it, &begun)
			if err != nil {
				return err
			}
			if stray != nil && !yield(stray) {
				return nil
			}
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return nil
		}
	}
}

// stray returns the reason why readers do not find an item of the journal table, nil if they do.
func (p *layout) stray(ctx context.Context, it table.Item, begun *string) (*journaltype.CorruptItemError, error) {
	if it[engine.AttrFormat] != nil {
		return nil, nil // the descriptor
	}
	partition, number := p.placeOf(it)
	if strings.HasPrefix(number, "-") {
		return nil, nil // the guard of a command
	}
	stray := p.corrupt(p.Config.Tables.Journal, it, "")
	id, ok := idOf(partition)
	if !ok {
		stray.Reason = "has a partition key that names no aggregate"
		return stray, nil
	}
	first, err := strconv.ParseUint(number, 10, 64)
	if err != nil || first == 0 {
		stray.Reason = "has a sort key that is not the number of an event"
		return stray, nil
	}
	stray.Aggregate, stray.Number = id, first
	if first == 1 {
		*begun = partition // the items of an aggregate follow one another
		count, _ := table.UintOf(it[attrCount])
		if listed, _ := table.StringOf(it[attrListed]); count > 0 && listed != partKey(id.Type, p.Shard(id)) {
			stray.Reason = fmt.Sprintf("is listed under %q in the index of aggregates instead of %q", listed, partKey(id.Type, p.Shard(id)))
			return stray, nil
		}
	}
	if part, ok := table.StringOf(it[attrTail]); ok && !slices.ContainsFunc(p.tailParts(p.Shard(id)), func(n int) bool { return part == partKey(id.Type, n) }) {
		stray.Reason = fmt.Sprintf("is in the tail's partition %q, which its shard does not have", part)
		return stray, nil
	}
	if *begun != partition {
		one, err := p.GetItem(ctx, p.Config.Tables.Journal, p.key(id, 1))
		if err != nil {
			return nil, err
		}
		if one == nil {
			stray.Reason = "is an event of an aggregate that has no event 1"
			return stray, nil
		}
		*begun = partition
	}
	return nil, nil
}
