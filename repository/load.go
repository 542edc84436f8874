package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Load returns an aggregate after its last event, strongly consistent: it includes all commits that
// were acknowledged before Load was called.
//
// With the context of a subscriber's message, a load of the event's aggregate from the same journal
// includes the event. A subscriber can see the event before the rest of its commit is visible. Load
// then waits for the commit: it reads the next version in a transaction, for 2 read units for each
// 4 KB, and loads again. Other aggregates of the commit may still be read without it. If a handler
// receives several events at once, as in projection.NewBatch, the context is that of the first.
//
// In the layout journal.Classic, Load reads the head and the events after the snapshot in it. The
// head costs one read unit for each 4 KB of the state. Load reads up to 8 events by key, for one
// unit each (up to 4 KB). It reads more than 8 with one Query for each MB, for half a unit for each
// 4 KB. Without such events it takes one round trip.
//
// In the layout journal.Packed, Load reads the snapshot and then, with one Query for each MB, the
// commits since. It costs one unit for each 4 KB of both, and two round trips or more.
//
// If the aggregate is in the [Config.Cache], Load reads the version and new events.
// docs/reference/cost.md has the costs. [Eventually] halves them in the layout journal.Packed.
//
// Errors: [journal.ErrNotFound] if the aggregate has no events, [*journal.DeletedError] if it was
// deleted, [*EventError], [*aggregate.InvalidIDError] and the errors of [journal.Journal.Head] and
// [journal.Journal.Events]. In a handler also [journal.ErrContended], if a transaction on the
// aggregate did not end within the RetryBudget of [journal.Config].
func (r *Repository[S]) Load(ctx context.Context, id string, given ...LoadOption) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	a, err := r.loadBy(ctx, name, given)
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("load: %w", err)
	}
	return r.sealed(a), nil
}

// LoadOption configures one call of [Repository.Load]. A nil option has no effect.
type LoadOption func(*loadOptions)

type loadOptions struct{ eventually bool }

// Eventually lets Load return the aggregate as it was some time ago, usually less than a second: it
// may lack commits that were acknowledged before. In the layout journal.Packed the load then costs
// half, and does not use the [Config.Cache]. It includes what this repository has written lately,
// and in a handler the event. In the layout journal.Classic the option has no effect.
//
// A Save of the result is as safe as any other: it returns a conflict if there are later commits.
func Eventually() LoadOption { return func(o *loadOptions) { o.eventually = true } }

// loadBy returns an aggregate as the options say. The error is [journal.ErrNotFound] if there are
// no events.
func (r *Repository[S]) loadBy(ctx context.Context, id aggregate.ID, given []LoadOption) (Aggregate[S], error) {
	var o loadOptions
	for _, option := range given {
		if option != nil {
			option(&o)
		}
	}
	if o.eventually {
		// An aggregate that seems to have no events may be new.
		if a, ok, err := r.peek(ctx, id); err != nil || ok && a.Version > 0 {
			return a, err
		}
	}
	return r.current(ctx, id, 0)
}

// LoadAtVersion returns an aggregate as it was after the event with the given number. For 0, it
// returns the aggregate before its first event. It starts from the latest usable snapshot that is
// not of a later event: the one in the head, otherwise a redundant one, see [Config.Redundancy].
// Saving the result returns a conflict unless it is the latest version.
//
// Errors: [*NoSuchEventError] if there are fewer events, [*journal.TruncatedError] if events that
// it needs have been removed, and the errors of Load.
func (r *Repository[S]) LoadAtVersion(ctx context.Context, id string, number uint64) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	a, err := r.byHead(ctx, name, func(head journal.Head) (Aggregate[S], error) {
		return r.loadAt(ctx, head, number)
	})
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("load: %w", err)
	}
	return r.sealed(a), nil
}

// LoadAtTime returns an aggregate as it was at a time: after the last event that had occurred then.
// If there was none, it returns the aggregate before its first event, with version 0.
//
// LoadAtTime finds the event by binary search, with one strongly consistent read for each doubling
// of the number of events: 17 for 100,000, in the layout journal.Packed up to twice as many. If the
// clocks of writers differ, an event may have an earlier time than those before it. Then several
// places in the history fit the time, and LoadAtTime uses one of them. The errors are those of
// [Repository.LoadAtVersion].
func (r *Repository[S]) LoadAtTime(ctx context.Context, id string, at time.Time) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	a, err := r.byHead(ctx, name, func(head journal.Head) (Aggregate[S], error) {
		number, err := r.journal.NumberAt(ctx, head, at)
		if err != nil {
			return Aggregate[S]{}, err
		}
		return r.loadAt(ctx, head, number)
	})
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("load: %w", err)
	}
	return r.sealed(a), nil
}

// current returns the aggregate as it is stored now, at the given version or a later one.
func (r *Repository[S]) current(ctx context.Context, id aggregate.ID, version uint64) (a Aggregate[S], err error) {
	err = r.since(ctx, id, version, func() (uint64, error) {
		var err error
		a, err = r.read(ctx, id)
		return a.Version, err
	})
	return a, err
}

// since calls read until it shows the aggregate at the given version, and at the event of the
// context. Reads outside a transaction can show one item of a commit before another. If read shows
// an earlier version, since reads the next version in a transaction, which waits for a commit in
// progress, and calls read again if there was one. So a commit has ended before each repetition. If
// there was none, the tables were restored to an earlier version, and the result of read is
// correct.
func (r *Repository[S]) since(ctx context.Context, id aggregate.ID, version uint64, read func() (uint64, error)) error {
	version = max(version, r.handledVersion(ctx, id))
	for {
		shown, err := read()
		if shown >= version || err != nil && !errors.Is(err, journal.ErrNotFound) {
			return err
		}
		failed := r.journal.Unchanged(ctx, []storage.Place{{Aggregate: id, Version: shown}})
		switch {
		case failed == nil:
			return err
		case !errors.Is(failed, journal.ErrConflict):
			return failed
		}
	}
}

// read loads the aggregate. If it is in the cache, read loads only new events. It can miss a commit
// that is still being applied: see since.
func (r *Repository[S]) read(ctx context.Context, id aggregate.ID) (Aggregate[S], error) {
	r.counters.loads.Add(1)
	a, ok := r.cache.get(id)
	switch {
	case ok:
		r.counters.cacheHits.Add(1)
	case r.config.Cache > 0:
		r.counters.cacheMisses.Add(1)
	}
	if ok {
		version, err := r.journal.Version(ctx, id)
		if err == nil {
			ok, err = r.catchUp(ctx, &a, version)
		}
		if err != nil {
			r.cache.forget(id)
			return r.before(id, nil, err), err
		}
	}
	if !ok {
		r.cache.forget(id)
		var err error
		if a, err = r.load(ctx, id); err != nil {
			return a, err
		}
	}
	r.cache.put(&a)
	return a, nil
}

// load returns the aggregate as it is stored now.
func (r *Repository[S]) load(ctx context.Context, id aggregate.ID) (Aggregate[S], error) {
	var a Aggregate[S]
	var left skipped
	begin := func(head journal.Head, snapshotErr error) uint64 {
		if snapshotErr != nil {
			r.ignoreSnapshot(head, snapshotErr)
		}
		before := a.from() // with a snapshot that was refused
		a, left = r.restore(head, head.Snapshot), skipped{}
		if from := a.from(); before.rebuild || before.newer {
			from.rebuild, from.newer = from.rebuild || before.rebuild, from.newer || before.newer
			a.setFrom(from)
		}
		return a.Version
	}
	apply := func(record *journal.Record) error { return r.replay(&a, record, &left) }
	loaded, err := r.journal.Load(ctx, id, begin, apply)
	if err != nil {
		return r.before(id, loaded.Commands, err), err
	}
	left.report(r.config.Logger, id, a.Version)
	a.setLoaded(loaded)
	return a, nil
}

// before returns an aggregate before its first event, if the error reports that there is no event.
// It includes the commands that had no events.
func (r *Repository[S]) before(id aggregate.ID, commands *storage.Commands, err error) (a Aggregate[S]) {
	if errors.Is(err, journal.ErrNotFound) {
		a.ID = id
		a.setLast(commands)
	}
	return a
}

// currentOrNew returns the aggregate for a decision, which may be the first.
func (r *Repository[S]) currentOrNew(ctx context.Context, id aggregate.ID) (Aggregate[S], error) {
	return r.currentSince(ctx, id, 0)
}

// currentSince is currentOrNew for a caller that knows that a commit was written, up to the given
// version.
func (r *Repository[S]) currentSince(ctx context.Context, id aggregate.ID, version uint64) (Aggregate[S], error) {
	a, err := r.current(ctx, id, version)
	if errors.Is(err, journal.ErrNotFound) {
		return a, nil
	}
	return a, err
}

// byHead loads an earlier version by means of a head that is not a tombstone. Head and events are
// read separately. If a truncation or deletion happens in between, byHead starts again with the
// head that shows it.
func (r *Repository[S]) byHead(
	ctx context.Context, id aggregate.ID, load func(journal.Head) (Aggregate[S], error),
) (Aggregate[S], error) {
	before := uint64(0) // the furthest truncation that is known
	for {
		var head journal.Head
		err := r.since(ctx, id, 0, func() (_ uint64, err error) {
			head, err = r.head(ctx, id)
			if err == nil && !head.DeletedAt.IsZero() {
				err = &journal.DeletedError{ID: id, Version: head.Version, At: head.DeletedAt}
			}
			return head.Version, err
		})
		if err != nil {
			return Aggregate[S]{}, err
		}
		before = max(before, head.TruncatedBefore)
		a, err := load(head)
		var truncated *journal.TruncatedError
		if !errors.As(err, &truncated) || truncated.Before <= before {
			return a, err
		}
		before = truncated.Before
	}
}

// head reads a head. It leaves out a snapshot whose encoding cannot be reversed, since a snapshot
// only shortens the load.
func (r *Repository[S]) head(ctx context.Context, id aggregate.ID) (journal.Head, error) {
	head, err := r.journal.Head(ctx, id)
	if !errors.As(err, new(*journal.EncodingError)) || errors.Is(err, journal.ErrKeyDestroyed) {
		return head, err
	}
	raw, rawErr := r.journal.Raw().Head(ctx, id)
	if rawErr != nil {
		return journal.Head{}, err
	}
	r.ignoreSnapshot(raw, err)
	raw.Snapshot = nil
	return raw, nil
}

func (r *Repository[S]) ignoreSnapshot(head journal.Head, reason error) {
	r.config.Logger.Error("Snapshot ignored, more events are replayed", reason, fields(head.Aggregate, head.Version))
}

func (r *Repository[S]) loadAt(ctx context.Context, head journal.Head, number uint64) (Aggregate[S], error) {
	if number > head.Version {
		return Aggregate[S]{}, noSuchEvent(head, number)
	}
	a, err := r.restoreAt(ctx, upTo(head, number), number)
	if err == nil {
		err = r.replayTo(ctx, &a, number)
	}
	return a, err
}

func noSuchEvent(head journal.Head, number uint64) error {
	return &NoSuchEventError{ID: head.Aggregate, Number: number, Version: head.Version}
}

// upTo returns a head without the redundant snapshots of later events.
func upTo(head journal.Head, number uint64) journal.Head {
	head.Redundant = slices.DeleteFunc(slices.Clone(head.Redundant), func(n uint64) bool { return n > number })
	return head
}

// replayTo applies the events after the version of the aggregate, up to the given version.
func (r *Repository[S]) replayTo(ctx context.Context, a *Aggregate[S], version uint64) error {
	var skipped skipped
	for record, err := range r.journal.Events(ctx, a.ID, a.Version+1, version) {
		if err != nil {
			return err
		}
		if err := r.replay(a, record, &skipped); err != nil {
			return err
		}
	}
	skipped.report(r.config.Logger, a.ID, a.Version)
	return nil
}

// replay applies a stored event, or the current events for it. One stored event is one version,
// even if it becomes several events or none. The error is an [*EventError].
func (r *Repository[S]) replay(a *Aggregate[S], record *journal.Record, skipped *skipped) error {
	err := r.definition.Replay(&a.State, record.EventType, record.Payload)
	if unknown, ok := r.unknownType(err); ok {
		skipped.add(record.Number, unknown)
		a.partial = true
	} else if err != nil {
		return &EventError{ID: a.ID, Number: record.Number, Err: err}
	}
	a.Version = record.Number
	return nil
}

// handledVersion returns the number of the event that is being handled if the event belongs to the
// aggregate, and otherwise 0.
func (r *Repository[S]) handledVersion(ctx context.Context, id aggregate.ID) uint64 {
	return handled.VersionOf(ctx, r.journal.Config.Tables.Journal, id)
}
