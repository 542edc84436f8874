package packed

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// endsAtOnce is the number of aggregates whose last items are read at the same time.
const endsAtOnce = 16

// indexLag is the time that a consistent list waits, because no index can be read with strong
// consistency. An index usually shows a write within a second.
const indexLag = 2 * time.Second

// listedPage is the largest number of aggregates in a page of the index.
const listedPage = 200

func (p *layout) Heads(ctx context.Context, q journaltype.HeadsQuery, pages *engine.HeadPages, yield func(journaltype.Head) bool) error {
	var start table.Item
	shard := 0
	if q.After != (aggregate.ID{}) {
		start, shard = p.listedKey(q.After), p.Shard(q.After)
	}
	if q.AggregateType == "" {
		return p.scanAggregates(ctx, start, pages, func(items []table.Item) error { return p.yieldHeads(ctx, items, true, q.Corrupt, yield) })
	}
	for ; shard < p.Config.Shards; shard++ {
		err := p.queryAggregates(ctx, q.AggregateType, shard, start, pages, func(items []table.Item) error {
			return p.yieldHeads(ctx, items, true, q.Corrupt, yield)
		})
		if err != nil {
			if errors.Is(err, engine.ErrStop) {
				return nil
			}
			return err
		}
		start = nil
	}
	return nil
}

func (p *layout) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*journaltype.CorruptItemError), yield func([]journaltype.Head) bool) error {
	if q.Consistent && !retry.Sleep(ctx, indexLag) {
		return ctx.Err()
	}
	var start table.Item
	if q.After != (aggregate.ID{}) {
		start = p.listedKey(q.After)
	}
	err := p.queryAggregates(ctx, q.AggregateType, q.Shard, start, nil, func(items []table.Item) error {
		var heads []journaltype.Head
		err := p.yieldHeads(ctx, items, q.Consistent, corrupt, func(h journaltype.Head) bool {
			heads = append(heads, h)
			return true
		})
		if err == nil && !yield(heads) {
			err = engine.ErrStop
		}
		return err
	})
	if errors.Is(err, engine.ErrStop) {
		return nil
	}
	return err
}

// listedKey returns the key of an aggregate in the index of aggregates.
func (p *layout) listedKey(id aggregate.ID) table.Item {
	key := p.key(id, 1)
	key[attrListed] = table.StringValue(partKey(id.Type, p.Shard(id)))
	return key
}

func (p *layout) queryAggregates(
	ctx context.Context, aggregateType string, shard int, start table.Item, pages *engine.HeadPages, do func([]table.Item) error,
) error {
	input := &dynamodb.QueryInput{
		TableName:                 &p.Config.Tables.Journal,
		IndexName:                 &p.Config.Indexes.JournalAggregate,
		KeyConditionExpression:    aws.String("#a = :a"),
		ExpressionAttributeNames:  table.AttributeNames("#a", attrListed),
		ExpressionAttributeValues: table.Item{":a": table.StringValue(partKey(aggregateType, shard))},
		ExclusiveStartKey:         start,
	}
	for {
		input.Limit = pages.Size(listedPage)
		out, err := p.Client.Query(ctx, input)
		if err != nil {
			return dynamo.Explain(err, p.Config.Tables.Journal)
		}
		if err := do(out.Items); err != nil {
			return err
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return nil
		}
	}
}

func (p *layout) scanAggregates(ctx context.Context, start table.Item, pages *engine.HeadPages, do func([]table.Item) error) error {
	input := &dynamodb.ScanInput{
		TableName: &p.Config.Tables.Journal, IndexName: &p.Config.Indexes.JournalAggregate, ExclusiveStartKey: start,
	}
	for {
		input.Limit = pages.Size(listedPage)
		out, err := p.Client.Scan(ctx, input)
		if err != nil {
			return dynamo.Explain(err, p.Config.Tables.Journal)
		}
		if err := do(out.Items); err != nil {
			if errors.Is(err, engine.ErrStop) {
				return nil
			}
			return err
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return nil
		}
	}
}

// yieldHeads reads the last item of each aggregate that the index lists, because the index does not
// contain the version.
func (p *layout) yieldHeads(ctx context.Context, items []table.Item, consistent bool, corrupt func(*journaltype.CorruptItemError), yield func(journaltype.Head) bool) error {
	heads, errs := make([]journaltype.Head, len(items)), make([]error, len(items))
	reads, reading := errgroup.WithContext(ctx)
	reads.SetLimit(endsAtOnce)
	for i, it := range items {
		reads.Go(func() error {
			heads[i], errs[i] = p.listedHead(reading, it, consistent)
			if errors.As(errs[i], new(*journaltype.CorruptItemError)) || errors.Is(errs[i], journaltype.ErrNotFound) {
				return nil
			}
			return errs[i]
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	for i, err := range errs {
		var unreadable *journaltype.CorruptItemError
		switch {
		case errors.As(err, &unreadable) && corrupt != nil:
			corrupt(unreadable)
		case errors.Is(err, journaltype.ErrNotFound):
			// An eventually consistent read does not return the aggregate yet.
		case err != nil:
			return err
		case !yield(heads[i]):
			return engine.ErrStop
		}
	}
	return nil
}

func (p *layout) listedHead(ctx context.Context, listed table.Item, consistent bool) (journaltype.Head, error) {
	partition, _ := p.placeOf(listed)
	id, ok := idOf(partition)
	if !ok {
		return journaltype.Head{}, p.corrupt(p.Config.Tables.Journal, listed, "has a partition key that names no aggregate")
	}
	last, err := p.endBy(ctx, id, consistent)
	if err != nil {
		var corrupt *journaltype.CorruptItemError
		if errors.As(err, &corrupt) {
			corrupt.Aggregate = id
		}
		return journaltype.Head{}, err
	}
	head := journaltype.Head{Aggregate: id, Version: last.last(), DeletedAt: last.deleted}
	head.TruncatedBefore, _ = table.UintOf(listed[attrBefore])
	return head, nil
}
