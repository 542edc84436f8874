package repository

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Save appends events to an aggregate, 1 to 99 of them in one atomic write, and returns the
// aggregate after them. Without events and without [WithCommandID] it does nothing. The events
// carry the metadata of the context; see [aggregate.ContextWithMetadata].
//
// The version of the aggregate is the condition: if another writer has committed meanwhile, the
// error is a [*journal.ConflictError]. Save does not try again, because only the caller can decide
// whether the events are still valid. With an error it returns the aggregate that it was passed. It
// never changes that aggregate or the values that its State refers to.
//
// If the repository returned the aggregate, the commit takes one round trip. Otherwise, for example
// if the aggregate was made by hand with a version from an If-Match header, Save loads it first and
// compares the versions. It does not use the State of such an aggregate. If S has maps, slices,
// pointers or interfaces, the caller may have changed the State through them. Before a commit that
// stores a snapshot, Save then loads the aggregate too, unless the load or the commit before has
// left its encoded form.
//
// For a command that was saved before, the error is a [*journal.DuplicateCommandError]. A command
// without events is recorded too.
//
// In the layout journal.Classic a commit costs these write units:
//
//   - two for each KB of each event,
//   - two for each KB of each event in the two indexes of the journal table together,
//   - three for each KB of the head with its state.
//
// In the layout journal.Packed it costs one write unit for each KB of all its events together and
// one in an index. A snapshot is a separate write there, after the commit. docs/reference/cost.md
// has the costs.
//
// Nothing was written unless the error is [journal.ErrOutcomeUnknown]. Other errors are those of
// [Repository.Load], an [*aggregate.UnencodableEventError], [*aggregate.UnknownEventError],
// [*aggregate.MalformedEventError] or [*UnencodableStateError].
func (r *Repository[S]) Save(
	ctx context.Context, a Aggregate[S], events aggregate.Events[S], given ...Option,
) (Aggregate[S], error) {
	if err := r.check(a); err != nil {
		return a, err
	}
	options, err := optionsOf(given)
	if err == nil {
		err = options.conflict(a.ID, a.Version)
	}
	if err != nil {
		return a, fmt.Errorf("save %s, nothing written: %w", a.ID, err)
	}
	if len(events) == 0 && options.commandID == "" {
		return a, nil
	}
	next, replayed, err := r.base(ctx, a, options.commandID)
	if err == nil {
		replayed, err = r.commit(ctx, &next, replayed, events, options)
	}
	if err != nil {
		return a, fmt.Errorf("save: %w", err)
	}
	if replayed {
		r.cache.put(&next)
	}
	return r.sealed(next), nil
}

// commit appends events and applies them to the aggregate. After an error the aggregate must not be
// used. Replayed says whether the state is known to be the result of the events. The result reports
// whether that is known after the commit.
func (r *Repository[S]) commit(
	ctx context.Context, a *Aggregate[S], replayed bool, events aggregate.Events[S], options options,
) (bool, error) {
	commit, replayed, err := r.draft(ctx, a, replayed, events, options)
	if err != nil {
		return replayed, err
	}
	begun := time.Now()
	receipt, err := r.append(ctx, commit)
	r.counters.commit(len(events), begun, err)
	if err != nil {
		return replayed, err
	}
	r.written(ctx, a, commit, receipt)
	return replayed, nil
}

// draft makes the commit of some events, and applies them to the aggregate. Its parameters and
// results are those of commit.
func (r *Repository[S]) draft(
	ctx context.Context, a *Aggregate[S], replayed bool, events aggregate.Events[S], options options,
) (storage.Commit, bool, error) {
	about := Commit{
		Aggregate: a.ID, Before: a.Version, After: a.Version + uint64(len(events)), Events: make([]EventInfo, len(events)),
		CommandID: cmp.Or(options.commandID, options.jointCommandID),
	}
	commit := storage.Commit{
		Aggregate: a.ID, Expected: a.Version, Proven: a.isLast(), Events: make([]storage.Event, len(events)),
		CommandID: options.commandID, Commands: a.from().commands,
	}
	metadata := aggregate.MetadataFromContext(ctx)
	for i, event := range events {
		info, err := r.encode(a.ID, about.Before+uint64(i)+1, event)
		if err != nil {
			return commit, replayed, fmt.Errorf("append to %s, nothing written: event %d of the commit: %w", a.ID, i+1, err)
		}
		about.Events[i] = info
		commit.Events[i] = storage.Event{ID: info.ID, Type: info.Type, Payload: info.Payload, Metadata: metadata}
	}
	if err := r.apply(a, about); err != nil {
		return commit, replayed, err
	}
	if len(events) == 0 {
		return commit, replayed, nil
	}
	writes, err := options.writesOf(about)
	if err != nil {
		return commit, replayed, fmt.Errorf("append to %s, nothing written: %w", a.ID, err)
	}
	commit.Writes = writes
	if r.isDue(*a, about) {
		if !replayed {
			if *a, err = r.replayed(ctx, about, options.commandID); err != nil {
				return commit, replayed, err
			}
			replayed, commit.Proven = true, true
		}
		if commit.Snapshot = r.snapshot(a); commit.Snapshot != nil {
			commit.Redundancy = r.redundancy(a.from(), commit.Expected)
		}
	}
	return commit, replayed, nil
}

// written records the result of a commit on the aggregate.
func (r *Repository[S]) written(ctx context.Context, a *Aggregate[S], commit storage.Commit, receipt storage.Receipt) {
	if commit.Snapshot != nil {
		r.counters.snapshot(receipt.SnapshotLeftOut)
		a.setFrom(r.afterSnapshot(ctx, *a, commit, receipt))
	}
	a.setLast(receipt.Commands)
}

// apply brings an aggregate to the version after a commit. It applies the events as a load will
// replay them. They share no memory with the caller's events.
func (r *Repository[S]) apply(a *Aggregate[S], c Commit) error {
	for i, e := range c.Events {
		stored, err := r.definition.Decode(e.Type, e.Payload)
		if err != nil {
			return fmt.Errorf("append to %s, nothing written: event %d of the commit could not be read back: %w", a.ID, i+1, err)
		}
		stored.Apply(&a.State)
	}
	a.Version = c.After
	return nil
}

// replayed returns the aggregate after a commit that is about to be written, from the stored events
// and the events of the commit.
func (r *Repository[S]) replayed(ctx context.Context, c Commit, commandID string) (Aggregate[S], error) {
	a, err := r.currentAt(ctx, c.Aggregate, c.Before, commandID)
	if err == nil {
		err = r.apply(&a, c)
	}
	return a, err
}
