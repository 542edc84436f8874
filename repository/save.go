package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
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
	if r.config.Middleware == nil {
		return r.save(ctx, a, events, given)
	}
	return r.wrapped(ctx, &Call{Aggregates: []aggregate.ID{a.ID}}, func(ctx context.Context) (Aggregate[S], aggregate.Events[S], error) {
		next, err := r.save(ctx, a, events, given)
		return next, events, err
	})
}

// save is Save without the middleware.
func (r *Repository[S]) save(ctx context.Context, a Aggregate[S], events aggregate.Events[S], given []Option) (Aggregate[S], error) {
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
	var duplicate *journal.DuplicateCommandError
	if !isCallers(err) && errors.As(err, &duplicate) {
		if mismatch := options.mismatch(a.ID, duplicate.CommitID); mismatch != nil {
			err = mismatch
		}
	}
	if err != nil {
		return a, fmt.Errorf("save: %w", err)
	}
	if replayed {
		r.cache.put(&next)
	}
	return r.sealed(next), nil
}
