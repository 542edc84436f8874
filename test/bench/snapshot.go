package main

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/repository"
)

// loadSnap compares Load of an aggregate with 100,000 events, a snapshot of them and 5 more events
// with Load of one with 10 events, a snapshot and 5 more. It uses dynamotest, since DynamoDB Local
// needs minutes to write that many.
func (b *bench) loadSnap(ctx context.Context) error {
	const name, short, long, after = "loadsnap", 10, 100_000, 5
	memory, err := b.inMemory(ctx)
	if err != nil {
		return err
	}
	repo, err := repository.New(memory.j, define(name), repository.Config{
		Snapshots: func(c repository.Commit) bool { return c.After == short || c.After == long },
	})
	if err != nil {
		return err
	}
	load := func(id string, count int) func(int) (time.Duration, error) {
		return func(int) (time.Duration, error) {
			return eachOf(func() error {
				acc, err := repo.Load(ctx, id)
				return errors.Join(err, expect(int(acc.Version), count+after), expect(acc.State.Balance, count+after))
			})
		}
	}
	for id, count := range map[string]int{"short": short, "long": long} {
		if err := fill(ctx, repo, id, count, eventBytes); err != nil {
			return err
		}
		acc, err := repo.Load(ctx, id)
		if err == nil {
			_, err = repo.Save(ctx, acc, events(after, eventBytes))
		}
		if err != nil {
			return err
		}
	}
	return alternate(name, b.many, cost, load("short", short), load("long", long))
}
