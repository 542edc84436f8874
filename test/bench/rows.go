package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/repository"
)

const (
	batchWriters = 8  // concurrent writers
	batchItems   = 25 // the limit of DynamoDB
)

// history writes n aggregates of one event each, which occurred an hour ago or later. The first one
// is a normal commit. The rows of the others are copies of its rows, written in batches, which is
// several times as fast.
func (b *bench) history(ctx context.Context, aggregateType string, n int) error {
	repo, err := repository.New(b.j, define(aggregateType), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	first := aggregate.ID{Type: aggregateType, Value: "a0"}
	if err := fill(ctx, repo, first.Value, 1, eventBytes); err != nil {
		return err
	}
	head, err := b.row(ctx, "snapshot", first, 0)
	if err != nil {
		return err
	}
	event, err := b.row(ctx, "journal", first, 1)
	if err != nil {
		return err
	}
	began := time.Now().Add(-time.Hour)
	var writers sync.WaitGroup
	errs := make([]error, batchWriters)
	for w := range batchWriters {
		writers.Add(1)
		go func() {
			defer writers.Done()
			rows := batch{client: b.client}
			for i := 1 + w; i < n && errs[w] == nil; i += batchWriters {
				id := aggregate.ID{Type: aggregateType, Value: fmt.Sprint("a", i)}
				errs[w] = rows.put(ctx,
					row{"snapshot", b.copyOf(head, id, 0)},
					row{"journal", eventAt(b.copyOf(event, id, 1), began.Add(time.Duration(i)*10*time.Millisecond))})
			}
			errs[w] = errors.Join(errs[w], rows.send(ctx))
		}()
	}
	writers.Wait()
	return errors.Join(errs...)
}

func (b *bench) row(ctx context.Context, table string, id aggregate.ID, number int) (item, error) {
	out, err := b.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: b.key(id, number), ConsistentRead: aws.Bool(true)})
	if err == nil && out.Item == nil {
		err = fmt.Errorf("%s has no row of %s with number %d", table, id, number)
	}
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

func (b *bench) key(id aggregate.ID, number int) item {
	return item{"pkey": text(storage.ShardKey(id.Type, b.j.Internal().Shard(id))), "skey": text(id.String() + "-" + strconv.Itoa(number))}
}

// copyOf returns a row for another aggregate.
func (b *bench) copyOf(it item, id aggregate.ID, number int) item {
	it = maps.Clone(it)
	maps.Copy(it, b.key(id, number))
	it["aid"] = text(id.String())
	return it
}

func eventAt(it item, at time.Time) item {
	it["event_id"], it["commit_id"], it["occurred_at"] = text(uuid.NewString()), text(uuid.NewString()), number(int(at.UnixMilli()))
	return it
}

type row struct {
	table string
	item  item
}

// batch collects rows and writes them together.
type batch struct {
	client *dynamodb.Client
	rows   map[string][]types.WriteRequest
	n      int
}

func (b *batch) put(ctx context.Context, rows ...row) error {
	if b.n+len(rows) > batchItems {
		if err := b.send(ctx); err != nil {
			return err
		}
	}
	if b.rows == nil {
		b.rows = map[string][]types.WriteRequest{}
	}
	for _, r := range rows {
		b.rows[r.table] = append(b.rows[r.table], types.WriteRequest{PutRequest: &types.PutRequest{Item: r.item}})
	}
	b.n += len(rows)
	return nil
}

func (b *batch) send(ctx context.Context) error {
	for len(b.rows) > 0 {
		out, err := b.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: b.rows})
		if err != nil {
			return err
		}
		b.rows = out.UnprocessedItems
	}
	b.rows, b.n = nil, 0
	return nil
}
