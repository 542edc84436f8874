package main

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/repository"
)

const eventBytes = 200

// commit compares Save of n events with the bare transaction of the same items. The snapshot policy
// is Never, since the bare side does not write a snapshot.
func (b *bench) commit(ctx context.Context, name string, n int) error {
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	acc, err := repo.NewAggregate("ours")
	if err != nil {
		return err
	}
	if acc, err = repo.Save(ctx, acc, events(1, eventBytes)); err != nil {
		return err
	}
	bare, err := b.bareWriter(ctx, repo, aggregate.ID{Type: name, Value: "bare"})
	if err != nil {
		return err
	}
	list := events(n, eventBytes)
	return alternate(name, b.pairs, cost,
		func(int) (time.Duration, error) {
			return timed(func() error { return bare.commit(ctx, list) })
		},
		func(int) (time.Duration, error) {
			return timed(func() (err error) {
				acc, err = repo.Save(ctx, acc, list)
				return err
			})
		},
	)
}

// cached compares Execute with a warm cache with the bare transaction. The difference is the
// remaining cost of loading.
func (b *bench) cached(ctx context.Context) error {
	const name = "cached"
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, Cache: 10})
	if err != nil {
		return err
	}
	list := events(1, eventBytes)
	var deposit aggregate.Decision[account] = func(account) (aggregate.Events[account], error) { return list, nil }
	if _, err := repo.Execute(ctx, "ours", deposit); err != nil {
		return err
	}
	bare, err := b.bareWriter(ctx, repo, aggregate.ID{Type: name, Value: "bare"})
	if err != nil {
		return err
	}
	return alternate(name, b.pairs, cost,
		func(int) (time.Duration, error) {
			return timed(func() error { return bare.commit(ctx, list) })
		},
		func(int) (time.Duration, error) {
			return timed(func() error {
				_, err := repo.Execute(ctx, "ours", deposit)
				return err
			})
		},
	)
}

// bareWriter creates an aggregate and returns a bare writer that continues it.
func (b *bench) bareWriter(ctx context.Context, repo *repository.Repository[account], id aggregate.ID) (*bareWriter, error) {
	acc, err := repo.NewAggregate(id.Value)
	if err != nil {
		return nil, err
	}
	if _, err := repo.Save(ctx, acc, events(1, eventBytes)); err != nil {
		return nil, err
	}
	return &bareWriter{client: b.client, id: id, partition: storage.ShardKey(id.Type, b.j.Internal().Shard(id)), version: 1}, nil
}

// latency measures the time from before a commit until a handler in the same process receives its
// event, and compares it with a bare commit. Handler and writer know the aggregates already, as in
// a process that has run for a while.
func (b *bench) latency(ctx context.Context) error {
	const name, aggregates = "latency", 50
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	messages, stop, err := b.subscribe(ctx, name, "latency")
	if err != nil {
		return err
	}
	defer stop()
	bare, err := b.bareWriter(ctx, repo, aggregate.ID{Type: name, Value: "bare"})
	if err != nil {
		return err
	}
	accounts := make([]repository.Aggregate[account], aggregates)
	for i := range accounts {
		if accounts[i], err = repo.NewAggregate(fmt.Sprint("ours", i)); err != nil {
			return err
		}
		if accounts[i], err = repo.Save(ctx, accounts[i], events(1, eventBytes)); err != nil {
			return err
		}
	}
	for range aggregates + 1 {
		(<-messages).Ack()
	}
	list := events(1, eventBytes)
	err = alternate(name, b.pairs, cost,
		func(int) (time.Duration, error) {
			return timed(func() error { return bare.commit(ctx, list) })
		},
		func(pair int) (time.Duration, error) {
			acc := &accounts[pair%aggregates]
			committed := make(chan error, 1)
			start := time.Now()
			go func() {
				var err error
				*acc, err = repo.Save(ctx, *acc, list)
				committed <- err
			}()
			for msg := range messages {
				took := time.Since(start)
				msg.Ack()
				// The events of the bare side arrive too, by polling.
				if msg.Metadata.Get("aggregate_id") != "bare" {
					return took, <-committed
				}
			}
			return 0, <-committed
		},
	)
	return err
}
