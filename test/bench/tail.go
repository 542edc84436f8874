package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// tail measures a new group that reads 100 aggregates of 200 events on 16 shards, up to the last
// ack. It is compared with paged queries of the same index, with the same concurrency.
func (b *bench) tail(ctx context.Context) error {
	const name, aggregates, each = "tail", 100, 200
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	if err := fillAll(ctx, repo, aggregates, each); err != nil {
		return err
	}
	var stats subscriber.Stats
	err = alternate(name, b.many, speed,
		func(int) (time.Duration, error) {
			return timed(func() error { return b.tailBare(ctx, name, aggregates*each) })
		},
		func(int) (time.Duration, error) {
			r, err := b.read(ctx, name, aggregates*each, nil)
			stats = r.stats
			return r.acked, err
		},
	)
	fmt.Printf("# tail: %d events delivered, %d positions written and %d claimed, %d events read by aggregate\n",
		stats.Delivered, stats.Positions, stats.Claims, stats.Fetched)
	return err
}

func (b *bench) tailBare(ctx context.Context, topic string, want int) error {
	var readers sync.WaitGroup
	counts, errs := make([]int, b.j.Shards()), make([]error, b.j.Shards())
	for shard := range b.j.Shards() {
		readers.Add(1)
		go func() {
			defer readers.Done()
			counts[shard], errs[shard] = bareTail(ctx, b.client, storage.ShardKey(topic, shard))
		}()
	}
	readers.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return errors.Join(errors.Join(errs...), expect(sum, want))
}

// tailOne measures a new group that reads 2,000 aggregates of one event each and stores as many
// positions, up to the end of Close. It is compared with paged queries and one update for each
// aggregate, with the same concurrency.
func (b *bench) tailOne(ctx context.Context) error {
	const name, aggregates = "tail-one", 2000
	if err := b.history(ctx, name, aggregates); err != nil {
		return err
	}
	return alternate(name, max(1, b.many/4), speed,
		func(int) (time.Duration, error) {
			return timed(func() error {
				return errors.Join(b.tailBare(ctx, name, aggregates), b.positionsBare(ctx, name, aggregates))
			})
		},
		func(int) (time.Duration, error) {
			r, err := b.read(ctx, name, aggregates, nil)
			return r.closed, errors.Join(err, expect(int(r.stats.Positions), aggregates))
		},
	)
}

// positionsBare writes rows like the positions of a new group.
func (b *bench) positionsBare(ctx context.Context, topic string, n int) error {
	const writersAtATime = 16 // as the subscriber has
	group := uuid.NewString()
	var writers sync.WaitGroup
	errs := make([]error, writersAtATime)
	for w := range writersAtATime {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := w; i < n && errs[w] == nil; i += writersAtATime {
				id := aggregate.ID{Type: topic, Value: fmt.Sprint("a", i)}
				_, errs[w] = b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
					TableName:                 aws.String("checkpoint"),
					Key:                       item{"pkey": text(group + "/" + storage.ShardKey(topic, b.j.Internal().Shard(id))), "skey": text("position/" + id.Value)},
					UpdateExpression:          aws.String("SET #p = :to, #e = :e"),
					ConditionExpression:       aws.String("attribute_not_exists(#p)"),
					ExpressionAttributeNames:  map[string]string{"#p": "position", "#e": "epoch"},
					ExpressionAttributeValues: item{":to": number(1), ":e": number(1)},
				})
			}
		}()
	}
	writers.Wait()
	return errors.Join(errs...)
}

// tailSlow compares how fast a new group reads 999 aggregates of 10 events while the handler of one
// more hangs, with the same when it does not hang.
func (b *bench) tailSlow(ctx context.Context) error {
	const name, aggregates, each = "tail-slow", 1000, 10
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	if err := fillAll(ctx, repo, aggregates, each); err != nil {
		return err
	}
	read := func(hold func(*message.Message) bool) func(int) (time.Duration, error) {
		return func(int) (time.Duration, error) {
			r, err := b.read(ctx, name, (aggregates-1)*each, hold)
			return r.acked, err
		}
	}
	hangs := func(msg *message.Message) bool { return msg.Metadata.Get(subscriber.AggregateIDKey) == "a0" }
	return alternate(name, b.many, speed, read(nil), read(hangs))
}
