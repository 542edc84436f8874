package main

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/repository"
)

// across2 compares a decision over two aggregates in a warm cache, with one event for each, with
// the bare transaction of the same items.
func (b *bench) across2(ctx context.Context) error {
	const name = "across2"
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, Cache: 10})
	if err != nil {
		return err
	}
	list := events(1, eventBytes)
	execute := func() error {
		var tx repository.Transaction
		from, to := repo.AddTo(&tx, "from"), repo.AddTo(&tx, "to")
		return tx.Execute(ctx, func() error {
			from.Append(list...)
			to.Append(list...)
			return nil
		})
	}
	if err := execute(); err != nil {
		return err
	}
	var bare [2]*bareWriter
	for i, id := range []string{"bare-from", "bare-to"} {
		if bare[i], err = b.bareWriter(ctx, repo, aggregate.ID{Type: name, Value: id}); err != nil {
			return err
		}
	}
	return alternate(name, b.pairs, cost,
		func(int) (time.Duration, error) {
			return timed(func() error { return commitBare(ctx, list, bare[:]...) })
		},
		func(int) (time.Duration, error) { return timed(execute) },
	)
}
