package repository

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// peek returns an aggregate by eventually consistent reads, as it is now or was some time ago. It
// returns false if such a read is not allowed, or if what it found does not count.
func (r *Repository[S]) peek(ctx context.Context, id aggregate.ID) (a Aggregate[S], ok bool, err error) {
	if !r.journal.Eventual() || r.config.IgnoreSnapshots || r.handledVersion(ctx, id) > 0 || r.recent.isDistrusted(id, r.journal.Config.Now()) {
		return a, false, nil
	}
	var left skipped
	loaded, err := r.journal.Peek(ctx, id, r.config.Redundancy != nil, func(head journal.Head) (uint64, error) {
		a, err = r.restored(head, head.Snapshot)
		return a.Version, err
	}, func(record *journal.Record) error { return r.replay(&a, record, &left) })
	switch {
	case errors.Is(err, engine.ErrDiscard):
		return a, false, nil
	case errors.Is(err, journal.ErrNotFound):
		a = r.before(id, loaded.Commands, err)
	case err != nil:
		return a, false, err
	default:
		left.report(r.config.Logger, id, a.Version)
		a.setLoaded(loaded)
	}
	if a.Version < r.recent.version(id) {
		r.recent.distrust(id, r.journal.Config.Now())
		return a, false, nil
	}
	r.counters.loads.Add(1)
	if r.config.Cache > 0 {
		r.counters.cacheMisses.Add(1)
	}
	return a, true, nil
}

// canGoOn reports whether goOn can bring an aggregate up to date.
func (r *Repository[S]) canGoOn(a Aggregate[S]) bool {
	return r.journal.Eventual() && r.config.Redundancy == nil && a.isLast() && a.knowsCommands()
}

// goOn brings an aggregate to its current version by reading only the commits after its own. It
// loads the aggregate if that is far behind, or if events that it needs were removed. It also loads
// it if there are new events and redundant snapshots are kept: events do not say which of these the
// head lists.
func (r *Repository[S]) goOn(ctx context.Context, base Aggregate[S], each func(*journal.Record)) (a Aggregate[S], err error) {
	a, ok := r.decoded(base) // the state of base may share memory with another one
	if !ok {
		a = base
	}
	err = r.since(ctx, a.ID, 0, func() (uint64, error) {
		err := r.replayOn(ctx, &a, each)
		return a.Version, err
	})
	if err == nil && a.Version > base.Version && r.config.Redundancy != nil {
		err = engine.ErrDiscard
	}
	if errors.Is(err, engine.ErrDiscard) {
		r.cache.forget(a.ID)
		return r.currentOrNew(ctx, a.ID)
	}
	return a, err
}

// replayOn applies the commits after the version of an aggregate, with their command ids. It
// returns engine.ErrDiscard if there are too many events, or if some were removed.
func (r *Repository[S]) replayOn(ctx context.Context, a *Aggregate[S], each func(*journal.Record)) error {
	var left skipped
	from := storage.Loaded{Version: a.Version, Commands: a.from().commands}
	loaded, err := r.journal.Continue(ctx, a.ID, from, func(record *journal.Record) error {
		if a.Version-from.Version >= catchUpMost {
			return engine.ErrDiscard
		}
		each(record)
		return r.replay(a, record, &left)
	})
	if err == nil {
		left.report(r.config.Logger, a.ID, a.Version)
		a.setLast(loaded.Commands)
	}
	return err
}
