package groups

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Unpark makes the group try the events of a parked aggregate again, from the failed event on.
//
// Errors: [ErrNotParked], [ErrNoGroup], subscriber.ErrFenced, [ErrCorrupt], and the errors of the
// journal and the context.
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

// Skip skips a single event: the group continues with the event after it. The number must be that
// of the next event of the aggregate that the group has to handle ([BehindAggregate].Next), so a
// repeated call does not skip another event. Skip also unparks the aggregate. It leaves a record of
// the event, with the reason for which it was parked, see [Group.Skipped].
//
// If the aggregate is not parked, the owner of the shard may be handling the event, or deliver it
// once more, until it notices that it has lost the shard. Its acks then do not count, and the
// writes of a projection are refused.
//
// Errors: [*NotNextError], [ErrNoSuchEvent], [ErrExternalPositions], journal.ErrNotFound, and those
// of Unpark except ErrNotParked.
func (g *Groups) Skip(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	done, reason := false, byOperator
	return g.edit(ctx, fmt.Sprintf("skip event %d", number), group, id, func(ctx context.Context, e edit) error {
		if done {
			return nil
		}
		if err := e.own(); err != nil {
			return err
		}
		position, found, err := e.position(ctx)
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
		if next := nextOf(position, found, e.rows, listed); next != number {
			return &NotNextError{Aggregate: id, Number: number, Next: next}
		}
		return e.has(number)
	}, func(ctx context.Context, e edit) error {
		if done { // an earlier attempt has skipped it, and the next owner may have handled more
			return e.list(ctx)
		}
		err := e.skip(ctx, number, reason)
		done = err == nil
		return err
	})
}

// ResetAggregate sets the position of a group in an aggregate. The group continues with the event
// after the position. Position 0 is the beginning, and the version of the aggregate skips all its
// events. ResetAggregate also unparks the aggregate.
//
// A member that works on the aggregate continues where it was until it notices the change, with its
// next heartbeat or when it next stores the position (subscriber.Timing.CommitInterval). Its acks
// in that time do not count.
//
// ResetAggregate deletes the records of skipped events that are delivered again. It writes no
// records for events that it skips.
//
// Events that are delivered again have their effects again. This includes projections, whose
// effects happen once each time the position passes an event. projection.IdempotentUpdate prevents
// repeated effects; but then an event that was skipped before has no effect either, since the items
// have already seen later events. So to handle a skipped event, clear the aggregate in the read
// model and reset to 0. Alternatively, correct the read model by hand and call
// [Groups.ForgetSkipped].
//
// If the row of the aggregate is the position (projection.Rows), position 0 empties the row, and a
// position before the current one is refused with [ErrRowAhead].
//
// Errors: [ErrNoSuchEvent] for a position beyond the last event, [*ReplayError], [ErrRowAhead],
// [ErrExternalPositions], journal.ErrNotFound, and those of Unpark except ErrNotParked. Unless an
// error says that nothing was changed, the reset may have been done. Then check [Group.Behind] and
// [Groups.Position] before you repeat the call: a second reset delivers the events once more.
func (g *Groups) ResetAggregate(ctx context.Context, group string, id aggregate.ID, position uint64) error {
	what := fmt.Sprintf("reset to event %d", position)
	var moved *edit
	err := g.edit(ctx, what, group, id,
		func(ctx context.Context, e edit) error {
			if err := e.own(); err != nil {
				return err
			}
			if moved == nil {
				if err := e.forward(ctx, position); err != nil {
					return err
				}
			}
			return e.has(position)
		},
		func(ctx context.Context, e edit) error {
			// An earlier attempt has moved the position. The next owner may have handled events
			// since, which must not be delivered again.
			if moved != nil {
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
