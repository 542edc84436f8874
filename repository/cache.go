package repository

import (
	"context"
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// catchUpMost is how many events a kept state may lag behind before it is loaded anew: a snapshot
// is nearer then.
const catchUpMost = 100

// cache keeps the last states that this repository has seen. They may be old, which costs a
// conflict or some events, and is never taken for the truth. A state that shares memory with its
// copies is kept as bytes, so that no decision can change it.
type cache[S any] struct {
	repository *Repository[S]
	kept       *lru.Cache[aggregate.ID, kept[S]] // nil for no cache
}

type kept[S any] struct {
	aggregate Aggregate[S] // a state that is not flat is there only as it is encoded
}

func newCache[S any](r *Repository[S], size int) (cache[S], error) {
	if size == 0 {
		return cache[S]{}, nil
	}
	entries, err := lru.New[aggregate.ID, kept[S]](size)
	return cache[S]{repository: r, kept: entries}, err
}

func (c cache[S]) get(id aggregate.ID) (Aggregate[S], bool) {
	if c.kept == nil {
		return Aggregate[S]{}, false
	}
	entry, ok := c.kept.Get(id)
	if !ok {
		return Aggregate[S]{}, false
	}
	a := entry.aggregate
	if !c.repository.flat {
		payload, _ := a.encoded()
		if _, err := c.repository.codec.DecodeSnapshot(payload, &a.State); err != nil {
			c.forget(id)
			return Aggregate[S]{}, false
		}
	}
	return a, true
}

// put keeps an aggregate unless a later version of it is there. Its state must be one that events
// have led to.
func (c cache[S]) put(a *Aggregate[S]) {
	if c.kept == nil || a.Version == 0 {
		return
	}
	if other, ok := c.kept.Peek(a.ID); ok && other.aggregate.Version > a.Version {
		return
	}
	if c.repository.config.Redundancy != nil && !a.from().listed {
		// Nothing would ever tell the kept one which redundant snapshots there are, and their list
		// would only grow.
		c.forget(a.ID)
		return
	}
	if !c.repository.flat {
		if _, known := a.encoded(); !known {
			payload, err := c.repository.codec.EncodeSnapshot(a.ID, a.Version, &a.State)
			if err != nil {
				c.forget(a.ID)
				return
			}
			a.setEncoded(payload)
		}
	}
	entry := kept[S]{aggregate: *a}
	entry.aggregate.Repeated = false
	if !c.repository.flat {
		var none S
		entry.aggregate.State = none
	}
	c.kept.Add(a.ID, entry)
}

func (c cache[S]) forget(id aggregate.ID) {
	if c.kept != nil {
		c.kept.Remove(id)
	}
}

// catchUp brings a kept aggregate to a version that its head has; false where it has to be loaded.
// Events do not tell which redundant snapshots the head lists since, and those that were removed
// have a snapshot that stands for them.
func (r *Repository[S]) catchUp(ctx context.Context, a *Aggregate[S], version uint64) (bool, error) {
	if version < a.Version || version-a.Version > catchUpMost || version > a.Version && r.config.Redundancy != nil {
		return false, nil
	}
	err := r.replayTo(ctx, a, version)
	if errors.As(err, new(*journal.TruncatedError)) {
		return false, nil
	}
	return true, err
}
