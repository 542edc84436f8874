package main

import (
	"context"
	"runtime"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/repository"
)

// commitCPU compares the processor time of Save of one event with that of the bare transaction,
// both on dynamotest. So it measures the cost of a commit for a process without waits for the
// network. It includes garbage collection.
func (b *bench) commitCPU(ctx context.Context) error {
	const name = "commit1-cpu"
	memory, err := b.inMemory(ctx)
	if err != nil {
		return err
	}
	repo, err := repository.New(memory.j, define(name), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	acc, err := repo.NewAggregate("ours")
	if err != nil {
		return err
	}
	bare, err := memory.bareWriter(ctx, repo, aggregate.ID{Type: name, Value: "bare"})
	if err != nil {
		return err
	}
	list := events(1, eventBytes)
	return alternate(name, b.many, cost,
		func(int) (time.Duration, error) {
			return cpuOf(func() error { return bare.commit(ctx, list) })
		},
		func(int) (time.Duration, error) {
			return cpuOf(func() (err error) {
				acc, err = repo.Save(ctx, acc, list)
				return err
			})
		},
	)
}

// packedCommitCPU compares the processor time of Save of one event in the packed layout with that
// of the PutItem of the same item before compression. It does so for an event that is too small to
// be compressed, and for one of 1 KB.
func (b *bench) packedCommitCPU(ctx context.Context) error {
	for _, of := range []struct {
		name  string
		bytes int
	}{{"packed-commit1-cpu", eventBytes}, {"packed-commit1-cpu-1kb", 1000}} {
		if err := b.packedCommitCPUOf(ctx, of.name, of.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) packedCommitCPUOf(ctx context.Context, name string, bytes int) error {
	memory, err := (&bench{client: dynamotest.Open().Client(), pairs: b.pairs, many: b.many}).inPacked(ctx)
	if err != nil {
		return err
	}
	save, err := memory.saver(ctx, name, "ours", bytes, 1)
	if err != nil {
		return err
	}
	bare := memory.barePacked(name)
	list := events(1, bytes)
	return alternate(name, b.many, cost,
		func(int) (time.Duration, error) {
			return cpuOf(func() error { return bare.commit(ctx, list) })
		},
		func(int) (time.Duration, error) { return cpuOf(save) },
	)
}

// cpuOf calls a function many times and returns the processor time of one call.
func cpuOf(do func() error) (time.Duration, error) {
	const often = 20 * inARow
	runtime.GC()
	start := cpuTime()
	for range often {
		if err := do(); err != nil {
			return 0, err
		}
	}
	return (cpuTime() - start) / often, nil
}
