package groups

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Unpark has the events of a parked aggregate tried again, beginning with the one that failed.
//
// Errors: [ErrNotParked], [ErrNoGroup], subscriber.ErrFenced, [ErrCorrupt], those of the journal,
// the context's.
func (g *Groups) Unpark(ctx context.Context, group string, id aggregate.ID) error {
	begun := false
	return g.edit(ctx, "unpark", group, id, func(ctx context.Context, e edit) error {
		listed, _, err := g.store.Listed(ctx, e.shard.Group, id)
		if err == nil && listed.Parked == nil && !begun {
			err = ErrNotParked
		}
		return err
	}, func(ctx context.Context, e edit) error {
		begun = true
		return e.list(ctx)
	})
}

// Skip passes over a single event: the one with that number, which has to be the next that the
// group has to handle in that aggregate, as [Groups.Behind] shows it; so a repeated call skips no
// further event. It also unparks the aggregate. Where it is not parked the owner of the shard may
// still have the event out, or send it once more, until it notices that it has lost the shard: what
// it acks then does not count, and a projection of it is refused. A record of it stays, with the
// reason for which it was parked, see [Groups.Skipped].
//
// Errors: [*NotNextError], [ErrNoSuchEvent], [ErrExternalPositions], and those of Unpark but ErrNotParked;
// journal.ErrNotFound.
func (g *Groups) Skip(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	done, reason := false, byOperator
	return g.edit(ctx, fmt.Sprintf("skip event %d", number), group, id, func(ctx context.Context, e edit) error {
		if done {
			return nil
		}
		if err := e.own(); err != nil {
			return err
		}
		position, err := e.position(ctx)
		if err != nil {
			return err
		}
		listed, _, err := g.store.Listed(ctx, e.shard.Group, id)
		if err != nil {
			return err
		}
		if p := listed.Parked; p != nil && p.Number == number {
			reason = skipReason(p)
		}
		if next := nextOf(position, listed); next != number {
			return &NotNextError{Aggregate: id, Number: number, Next: next}
		}
		return e.has(number)
	}, func(ctx context.Context, e edit) error {
		if done { // before the shard was taken away, whose next owner may have gone on
			return e.list(ctx)
		}
		err := e.skip(ctx, number, reason)
		done = err == nil
		return err
	})
}

// ResetAggregate puts a group at any place in an aggregate's history: as if the event of that
// number had been the last one that it acked. 0 is the beginning; the version of the aggregate
// skips all that it has. It also unparks the aggregate. A member that works on the aggregate goes
// on from where it was until it notices, by its next sign of life or its next write of the position
// (subscriber.Config.CommitInterval); what it acks in that time does not count.
//
// It also has a skipped event handled after all, with all events behind it. Records of those that
// come again are deleted; events that a position further on passes over get none. What was handled
// before takes effect once more, in projections too: their effects are exactly once for each time
// that the position passes an event. With projection.IdempotentUpdate it does not, but the skipped
// event has no effect either, as the items have seen later ones. So clear what the read model has
// of the aggregate and reset it to 0; or make good for the one event by hand and call
// [Groups.ForgetSkipped].
//
// Errors: [ErrNoSuchEvent] for a position beyond the last event, [ErrExternalPositions], those of Unpark
// except ErrNotParked, and journal.ErrNotFound. After an error that does not say that nothing was
// changed, the reset may have been done. Check [Groups.Behind] and [Groups.Applied] before you
// repeat the call: a second reset delivers the events once more.
func (g *Groups) ResetAggregate(ctx context.Context, group string, id aggregate.ID, position uint64) error {
	what := fmt.Sprintf("reset to event %d", position)
	var moved *edit
	err := g.edit(ctx, what, group, id,
		func(_ context.Context, e edit) error {
			if err := e.own(); err != nil {
				return err
			}
			return e.has(position)
		},
		func(ctx context.Context, e edit) error {
			if moved != nil { // before the shard was taken away: what its next owner has handled since must not come once more
				return e.list(ctx)
			}
			err := e.move(ctx, position)
			if err == nil {
				moved = &e
			}
			return err
		})
	if err != nil {
		return err
	}
	if err := moved.recall(ctx, position); err != nil {
		return failedEdit(what, group, id, err)
	}
	return nil
}
