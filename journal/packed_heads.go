package journal

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

// endsAtOnce is the number of aggregates whose last items are read at the same time.
const endsAtOnce = 16

// indexLag is the time that a consistent list waits, because no index can be read with strong
// consistency. An index usually shows a write within a second.
const indexLag = 2 * time.Second

// listedPage is the largest number of aggregates in a page of the index.
const listedPage = 200

func (p *packed) Heads(ctx context.Context, q HeadsQuery, pages *HeadPages, yield func(Head) bool) error {
	var start Item
	shard := 0
	if q.After != (aggregate.ID{}) {
		start, shard = p.listedKey(q.After), p.Shard(q.After)
	}
	if q.AggregateType == "" {
		return p.scanAggregates(ctx, start, pages, func(items []Item) error { return p.yieldHeads(ctx, items, true, q.Corrupt, yield) })
	}
	for ; shard < p.Config.Shards; shard++ {
		err := p.queryAggregates(ctx, q.AggregateType, shard, start, pages, func(items []Item) error {
			return p.yieldHeads(ctx, items, true, q.Corrupt, yield)
		})
		if err != nil {
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
		start = nil
	}
	return nil
}

func (p *packed) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError), yield func([]Head) bool) error {
	if q.Consistent && !Sleep(ctx, indexLag) {
		return ctx.Err()
	}
	var start Item
	if q.After != (aggregate.ID{}) {
		start = p.listedKey(q.After)
	}
	err := p.queryAggregates(ctx, q.AggregateType, q.Shard, start, nil, func(items []Item) error {
		var heads []Head
		err := p.yieldHeads(ctx, items, q.Consistent, corrupt, func(h Head) bool {
			heads = append(heads, h)
			return true
		})
		if err == nil && !yield(heads) {
			err = ErrStop
		}
		return err
	})
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// listedKey returns the key of an aggregate in the index of aggregates.
func (p *packed) listedKey(id aggregate.ID) Item {
	key := p.key(id, 1)
	key[attrListed] = StringValue(partKey(id.Type, p.Shard(id)))
	return key
}

func (p *packed) queryAggregates(
	ctx context.Context, aggregateType string, shard int, start Item, pages *HeadPages, do func([]Item) error,
) error {
	input := &dynamodb.QueryInput{
		TableName:                 &p.Config.Tables.Journal,
		IndexName:                 &p.Config.Indexes.JournalAggregate,
		KeyConditionExpression:    aws.String("#a = :a"),
		ExpressionAttributeNames:  AttributeNames("#a", attrListed),
		ExpressionAttributeValues: Item{":a": StringValue(partKey(aggregateType, shard))},
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

func (p *packed) scanAggregates(ctx context.Context, start Item, pages *HeadPages, do func([]Item) error) error {
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
			if errors.Is(err, ErrStop) {
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
func (p *packed) yieldHeads(ctx context.Context, items []Item, consistent bool, corrupt func(*CorruptItemError), yield func(Head) bool) error {
	heads, errs := make([]Head, len(items)), make([]error, len(items))
	reads, reading := errgroup.WithContext(ctx)
	reads.SetLimit(endsAtOnce)
	for i, it := range items {
		reads.Go(func() error {
			heads[i], errs[i] = p.listedHead(reading, it, consistent)
			if errors.As(errs[i], new(*CorruptItemError)) || errors.Is(errs[i], ErrNotFound) {
				return nil
			}
			return errs[i]
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	for i, err := range errs {
		var unreadable *CorruptItemError
		switch {
		case errors.As(err, &unreadable) && corrupt != nil:
			corrupt(unreadable)
		case errors.Is(err, ErrNotFound):
			// An eventually consistent read does not return the aggregate yet.
		case err != nil:
			return err
		case !yield(heads[i]):
			return ErrStop
		}
	}
	return nil
}

func (p *packed) listedHead(ctx context.Context, listed Item, consistent bool) (Head, error) {
	partition, _ := p.placeOf(listed)
	id, ok := idOf(partition)
	if !ok {
		return Head{}, p.corrupt(p.Config.Tables.Journal, listed, "has a partition key that names no aggregate")
	}
	last, err := p.endBy(ctx, id, consistent)
	if err != nil {
		var corrupt *CorruptItemError
		if errors.As(err, &corrupt) {
			corrupt.Aggregate = id
		}
		return Head{}, err
	}
	head := Head{Aggregate: id, Version: last.last(), DeletedAt: last.deleted}
	head.TruncatedBefore, _ = UintOf(listed[attrBefore])
	return head, nil
}
