package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/repository"
)

// fill writes n events of an aggregate, in the largest possible commits.
func fill(ctx context.Context, repo *repository.Repository[account], id string, n, bytes int) error {
	acc, err := repo.NewAggregate(id)
	for err == nil && n > 0 {
		some := min(n, storage.MaxEvents)
		acc, err = repo.Save(ctx, acc, events(some, bytes))
		n -= some
	}
	return err
}

// fillWriters is the number of writers of large transactions. More would time out on a slow machine
// because they wait for each other.
const fillWriters = 2

// fillAll writes a number of aggregates with the ids a0, a1 and so on.
func fillAll(ctx context.Context, repo *repository.Repository[account], aggregates, each int) error {
	var writers sync.WaitGroup
	errs := make([]error, fillWriters)
	for w := range fillWriters {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := w; i < aggregates && errs[w] == nil; i += fillWriters {
				errs[w] = fill(ctx, repo, fmt.Sprint("a", i), each, eventBytes)
			}
		}()
	}
	writers.Wait()
	return errors.Join(errs...)
}

// load compares a full replay of 1,500 events of 1 KB with the bare reads. Both decode the events.
func (b *bench) load(ctx context.Context) error {
	const name, count = "load1500", 1500
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	if err := fill(ctx, repo, "x", count, 1000); err != nil {
		return err
	}
	id := aggregate.ID{Type: name, Value: "x"}
	partition := storage.ShardKey(name, b.j.Internal().Shard(id))
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

func expect(got, want int) error {
	if got != want {
		return fmt.Errorf("read %d events, but %d were written", got, want)
	}
	return nil
}
