package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// fill writes n events of an aggregate, in commits as large as they can be.
func fill(ctx context.Context, repo *repository.Repository[account], id string, n, bytes int) error {
	acc, err := repo.NewAggregate(id)
	for err == nil && n > 0 {
		some := min(n, journal.MaxEvents)
		acc, err = repo.Save(ctx, acc, events(some, bytes)...)
		n -= some
	}
	return err
}

// load measures a full replay of 1,500 events of 1 KB against the bare reads, both with decoding.
func (b *bench) load(ctx context.Context) error {
	const name, count = "load1500", 1500
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	if err := fill(ctx, repo, "x", count, 1000); err != nil {
		return err
	}
	id := aggregate.ID{Type: name, Value: "x"}
	partition := journal.ShardKey(name, b.j.Shard(id))
	return alternate(name, 5*b.many, cost,
		func(int) (time.Duration, error) {
			return timed(func() error {
				state, n, err := bareLoad(ctx, b.client, partition, id.String())
				return errors.Join(err, expect(n, count), expect(state.Balance, count))
			})
		},
		func(int) (time.Duration, error) {
			return timed(func() error {
				acc, err := repo.Load(ctx, "x")
				return errors.Join(err, expect(int(acc.Version), count), expect(acc.State.Balance, count))
			})
		},
	)
}

// tail measures a new group that reads 100 aggregates of 200 events on 16 shards, up to the last ack,
// against paged queries of the same index, as many at a time.
func (b *bench) tail(ctx context.Context) error {
	const name, aggregates, each = "tail", 100, 200
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	for i := range aggregates {
		if err := fill(ctx, repo, fmt.Sprint("a", i), each, eventBytes); err != nil {
			return err
		}
	}
	var stats subscriber.Stats
	err = alternate(name, b.many, speed,
		func(int) (time.Duration, error) {
			return timed(func() error { return b.tailBare(ctx, name, aggregates*each) })
		},
		func(int) (time.Duration, error) {
			sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: watermill.NewShortUUID()}, nil)
			if err != nil {
				return 0, err
			}
			took, err := timed(func() error {
				messages, err := sub.Subscribe(ctx, name)
				for range aggregates * each {
					if err != nil {
						return err
					}
					msg := <-messages
					if !msg.Ack() {
						err = errors.New("a message could not be acked")
					}
				}
				return err
			})
			err = errors.Join(err, sub.Close())
			stats = sub.Stats()
			return took, err
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
			counts[shard], errs[shard] = bareTail(ctx, b.client, journal.ShardKey(topic, shard))
		}()
	}
	readers.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return errors.Join(errors.Join(errs...), expect(sum, want))
}

func (b *bench) subscribe(ctx context.Context, topic, group string) (<-chan *message.Message, func(), error) {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: group}, nil)
	if err != nil {
		return nil, nil, err
	}
	messages, err := sub.Subscribe(ctx, topic)
	return messages, func() { _ = sub.Close() }, err
}

func expect(got, want int) error {
	if got != want {
		return fmt.Errorf("read %d where %d were written", got, want)
	}
	return nil
}
