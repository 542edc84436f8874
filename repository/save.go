package repository

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
)

// Save appends events to an aggregate, 1 to 99 of them in one transaction, and gives the aggregate as it is
// after them. Without events it does nothing. The events carry the metadata of the context; see
// [aggregate.ContextWithMetadata].
//
// The aggregate is one that Load, Execute, Save or NewAggregate gave, and its version is the condition: when
// somebody else has written meanwhile, the error is a [*journal.ConflictError]. It is not tried again, as only
// the caller can tell whether the events still hold. On any error the aggregate that is returned is the one
// that was given. That one is never changed, nor what its state leads to.
//
// It is one round trip and no read. For the costs, and for what is sent again when, see
// [journal.Journal.Append].
//
// Nothing was written when the error is one of those that Append names for this case, or an
// [*aggregate.UnencodableEventError], [*aggregate.UnknownEventError], [*aggregate.MalformedEventError] or
// [*UnencodableStateError].
func (r *Repository[S]) Save(ctx context.Context, a Aggregate[S], events ...aggregate.Event[S]) (Aggregate[S], error) {
	return r.SaveWith(ctx, a, events)
}

// SaveWith is [Repository.Save] with options. A command that was saved before is a [*journal.DuplicateCommandError] here; one
// without events is recorded all the same.
func (r *Repository[S]) SaveWith(
	ctx context.Context, a Aggregate[S], events aggregate.Events[S], given ...Option,
) (Aggregate[S], error) {
	if err := r.check(a); err != nil {
		return a, err
	}
	options, err := optionsOf(given)
	if err != nil {
		return a, fmt.Errorf("save %s, nothing written: %w", a.ID, err)
	}
	if len(events) == 0 && options.commandID == "" {
		return a, nil
	}
	next, err := r.copyOf(a)
	if err == nil {
		err = r.commit(ctx, &next, events, options)
	}
	if err != nil {
		return a, fmt.Errorf("save: %w", err)
	}
	r.cache.put(next)
	return next, nil
}

// commit appends events and applies them to the aggregate, which is of no use any more if that fails.
func (r *Repository[S]) commit(ctx context.Context, a *Aggregate[S], events aggregate.Events[S], options options) error {
	commit := eventlog.Commit{Aggregate: a.ID, Expected: a.Version, Events: make([]eventlog.Event, len(events))}
	metadata := aggregate.MetadataFromContext(ctx)
	for i, event := range events {
		info, payload, err := r.encode(a.ID, a.Version+uint64(i)+1, event)
		if err != nil {
			return fmt.Errorf("append to %s, nothing written: event %d of the commit: %w", a.ID, i+1, err)
		}
		// What is applied is what will be replayed, and shares nothing with the caller's event.
		stored, err := r.definition.Decode(info.Type, payload)
		if err != nil {
			return fmt.Errorf("append to %s, nothing written: event %d of the commit could not be read back: %w", a.ID, i+1, err)
		}
		stored.Apply(&a.State)
		commit.Events[i] = eventlog.Event{ID: info.ID, Type: info.Type, Payload: payload, Metadata: metadata}
	}
	commit.CommandID = options.commandID
	if len(events) > 0 {
		if err := options.addWrites(&commit); err != nil {
			return fmt.Errorf("append to %s, nothing written: %w", a.ID, err)
		}
		a.Version += uint64(len(events))
		if commit.Snapshot = r.snapshot(*a, commit); commit.Snapshot != nil {
			commit.Redundancy = r.redundancy(a.from(), commit.Expected)
		}
	}
	receipt, err := r.journal.Append(ctx, commit)
	if err != nil {
		return err
	}
	if commit.Snapshot != nil {
		a.setFrom(r.settle(ctx, *a, commit, receipt))
	}
	return nil
}
