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

func (p *packed) heads(ctx context.Context, q HeadsQuery, pages *headPages, yield func(Head) bool) error {
	var start item
	shard := 0
	if q.After != (aggregate.ID{}) {
		start, shard = p.listedKey(q.After), p.Shard(q.After)
	}
	if q.AggregateType == "" {
		return p.scanAggregates(ctx, start, pages, func(items []item) error { return p.yieldHeads(ctx, items, true, q.Corrupt, yield) })
	}
	for ; shard < p.config.Shards; shard++ {
		err := p.queryAggregates(ctx, q.AggregateType, shard, start, pages, func(items []item) error {
			return p.yieldHeads(ctx, items, true, q.Corrupt, yield)
		})
		if err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
		start = nil
	}
	return nil
}

func (p *packed) shardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError), yield func([]Head) bool) error {
	if q.Consistent && !sleep(ctx, indexLag) {
		return ctx.Err()
	}
	var start item
	if q.After != (aggregate.ID{}) {
		start = p.listedKey(q.After)
	}
	err := p.queryAggregates(ctx, q.AggregateType, q.Shard, start, nil, func(items []item) error {
		var heads []Head
		err := p.yieldHeads(ctx, items, q.Consistent, corrupt, func(h Head) bool {
			heads = append(heads, h)
			return true
		})
		if err == nil && !yield(heads) {
			err = errStop
		}
		return err
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// listedKey returns the key of an aggregate in the index of aggregates.
func (p *packed) listedKey(id aggregate.ID) item {
	key := p.key(id, 1)
	key[attrListed] = stringValue(partKey(id.Type, p.Shard(id)))
	return key
}

func (p *packed) queryAggregates(
	ctx context.Context, aggregateType string, shard int, start item, pages *headPages, do func([]item) error,
) error {
	input := &dynamodb.QueryInput{
		TableName:                 &p.config.Tables.Journal,
		IndexName:                 &p.config.Indexes.JournalAggregate,
		KeyConditionExpression:    aws.String("#a = :a"),
		ExpressionAttributeNames:  attributeNames("#a", attrListed),
		ExpressionAttributeValues: item{":a": stringValue(partKey(aggregateType, shard))},
		ExclusiveStartKey:         start,
	}
	for {
		input.Limit = pages.size(listedPage)
		out, err := p.client.Query(ctx, input)
		if err != nil {
			return dynamo.Explain(err, p.config.Tables.Journal)
		}
		if err := do(out.Items); err != nil {
			return err
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return nil
		}
	}
}

func (p *packed) scanAggregates(ctx context.Context, start item, pages *headPages, do func([]item) error) error {
	input := &dynamodb.ScanInput{
		TableName: &p.config.Tables.Journal, IndexName: &p.config.Indexes.JournalAggregate, ExclusiveStartKey: start,
	}
	for {
		input.Limit = pages.size(listedPage)
		out, err := p.client.Scan(ctx, input)
		if err != nil {
			return dynamo.Explain(err, p.config.Tables.Journal)
		}
		if err := do(out.Items); err != nil {
			if errors.Is(err, errStop) {
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
func (p *packed) yieldHeads(ctx context.Context, items []item, consistent bool, corrupt func(*CorruptItemError), yield func(Head) bool) error {
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
			return errStop
		}
	}
	return nil
}

func (p *packed) listedHead(ctx context.Context, listed item, consistent bool) (Head, error) {
	partition, _ := p.placeOf(listed)
	id, ok := idOf(partition)
	if !ok {
		return Head{}, p.corrupt(p.config.Tables.Journal, listed, "has a partition key that names no aggregate")
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
	head.TruncatedBefore, _ = uintOf(listed[attrBefore])
	return head, nil
}
