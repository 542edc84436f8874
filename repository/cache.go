package repository

import (
	"context"
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/journal"
)

// catchUpMost is the number of events that a cached state may be behind. If it is further behind,
// the aggregate is loaded again, since a snapshot is closer then.
const catchUpMost = 100

// cache holds the last states that this repository has read or written. They may be old: that costs
// a conflict or the read of some events, but no result relies on them. A state that shares memory
// with its copies is cached as bytes, so that no decision can change it.
type cache[S any] struct {
	repository *Repository[S]
	// A state that is not flat is only there in its encoded form.
	entries *lru.Cache[aggregate.ID, Aggregate[S]] // nil for no cache
}

func newCache[S any](r *Repository[S], size int) (cache[S], error) {
	if size == 0 {
		return cache[S]{}, nil
	}
	entries, err := lru.New[aggregate.ID, Aggregate[S]](size)
	return cache[S]{repository: r, entries: entries}, err
}

func (c cache[S]) get(id aggregate.ID) (Aggregate[S], bool) {
	if c.entries == nil {
		return Aggregate[S]{}, false
	}
	a, ok := c.entries.Get(id)
	if !ok {
		return Aggregate[S]{}, false
	}
	if !c.repository.flat {
		payload, _ := a.encoded()
		if _, err := c.repository.codec.DecodeSnapshot(payload, &a.State); err != nil {
			c.forget(id)
			return Aggregate[S]{}, false
		}
	}
	return a, true
}

// put caches an aggregate unless a later version is cached. The state must be the result of events,
// not one that a caller may have changed.
func (c cache[S]) put(a *Aggregate[S]) {
	if c.entries == nil || a.Version == 0 {
		return
	}
	if other, ok := c.entries.Peek(a.ID); ok && other.Version > a.Version {
		return
	}
	if c.repository.config.Redundancy != nil && !a.from().listed {
		// The repository would not learn which redundant snapshots exist, and the list of them
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
	entry := *a
	entry.Repeated = false
	if !c.repository.flat {
		var none S
		entry.State = none
	}
	c.entries.Add(a.ID, entry)
}

func (c cache[S]) forget(id aggregate.ID) {
	if c.entries != nil {
		c.entries.Remove(id)
	}
}

// forgetOld removes a cached aggregate if the error of a call shows that it is not the latest one.
// Otherwise a call that makes no further attempt would leave the next call with the same state.
func (c cache[S]) forgetOld(id aggregate.ID, err error) {
	if c.entries == nil {
		return
	}
	var conflict *journal.ConflictError
	var deleted *journal.DeletedError
	switch {
	case errors.As(err, &deleted) && deleted.ID == id:
		c.forget(id)
	case errors.As(err, &conflict) && conflict.ID == id:
		if entry, ok := c.entries.Peek(id); ok && entry.Version != conflict.Actual {
			c.forget(id)
		}
	}
}

// catchUp brings a cached aggregate to the version of its head. It returns false if the aggregate
// must be loaded again. There are three such cases: it is too far behind, events that it needs were
// removed, or redundant snapshots are kept. In the last case there are new ones, and events do not
// say which ones the head lists.
func (r *Repository[S]) catchUp(ctx context.Context, a *Aggregate[S], version uint64) (bool, error) {
	if version < a.Version || version-a.Version > catchUpMost || version > a.Version && r.config.Redundancy != nil {
		return false, nil
	}
	var err error
	switch {
	case version == a.Version:
	case r.canGoOn(*a):
		err = r.replayOn(ctx, a, func(*journal.Record) {})
	default:
		err = r.replayTo(ctx, a, version)
	}
	if errors.As(err, new(*journal.TruncatedError)) || errors.Is(err, engine.ErrDiscard) {
		return false, nil
	}
	return true, err
}
