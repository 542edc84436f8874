package groups

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber"
)

// Reset makes a group begin again at a start: subscriber.Beginning, Now or At. The group begins
// without positions, cursors, and records of parked aggregates and skipped events. A paused group
// stays paused. A group that was stopped (subscriber.Stop) becomes a paused group.
//
// The reset is one write, which raises [Status].Resets. The rows from before are not read any more.
// They stay for [FenceTime], because a transaction of a handler may still arrive: the rows make it
// fail. After the reset, Reset deletes rows of earlier resets whose time has passed, see
// [Group.CleanUp]. It calls progress, if not nil, with the number of rows that each request has
// deleted.
//
// The group may have members. Until they see the reset, within a quarter of
// subscriber.Timing.LeaseDuration, they continue where they were. During that time later events of
// an aggregate may be delivered between the events from the start. An effect may still commit with
// a position from before the reset. To prevent this, for example when you clear a read model, pause
// the group first, and wait until it is idle.
//
// A group with subscriber.Config.NoReplay is only reset to [subscriber.Now], unless [WithReplay] is
// set.
//
// Errors: [ErrNoGroup], [*ReplayError], [ErrCorrupt], and the errors of the journal and the
// context. With [ErrLeftovers] the group was reset.
func (g *Group) Reset(ctx context.Context, to subscriber.Start, progress func(rows int)) error {
	now := g.journal.Config.Now()
	start := g.store.Start(to.Time(now))
	reset, err := g.store.ModifyMembership(ctx, g.key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		if to != subscriber.Now() && r.NoReplay && !g.replays {
			return r, &ReplayError{}
		}
		return r.Reset(start, now), nil
	})
	if err != nil {
		return g.failed("reset", err)
	}
	if err := g.cleanUp(ctx, reset.Ended, progress); err != nil {
		return g.failed("reset", fmt.Errorf("%w: %w", ErrLeftovers, err))
	}
	return nil
}
