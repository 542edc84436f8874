package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
)

// RemoveOptions configures [Group.Remove].
type RemoveOptions struct {
	// Force also removes a group that has members. A member that is alive creates the group again
	// when it notices the removal. The new group begins at the member's subscriber.Config.Start.
	Force bool
	// Progress, if set, is called with the number of old rows that each request has deleted.
	Progress func(rows int)
}

// Remove removes a group. If a group with the same name subscribes later, it is a new group.
//
// Without Force it refuses a group with members, with an [*ActiveError]. A member that crashed
// counts until another member has missed its heartbeats for the time of a lease. If it was the last
// member, use Force.
//
// Remove pauses the group, and then deletes it, with two writes. For more than 50 members, each 50
// need another one. If it fails before the end, the group is paused; call Remove again. The rows of
// the group are not read any more. They stay for [FenceTime], as those of before a [Group.Reset]
// do. If you clear and reuse what the handlers have written, also pause the group before, and call
// [Group.WaitIdle].
//
// After that, Remove deletes the rows of all removed groups whose time has passed, see
// [Group.CleanUp]. So a program that removes a group for each generation of a read model needs
// nothing else. To find these groups it costs one read unit for about 40 groups. A few bytes of a
// removed group stay: the value of Resets with which a new group of this name would begin.
//
// A group with subscriber.Config.NoReplay is only removed with [WithReplay], because a new group of
// this name can begin with the first event.
//
// Errors: [*ActiveError], [*ReplayError], [ErrNoGroup], [ErrCorrupt], and the errors of the journal
// and the context. With [ErrLeftovers] the group was removed.
func (g *Group) Remove(ctx context.Context, options RemoveOptions) error {
	err := g.remove(ctx, options)
	if err == nil {
		if err = g.cleanUpRemoved(ctx, options.Progress); err != nil {
			err = fmt.Errorf("%w: %w", ErrLeftovers, err)
		}
	}
	if err != nil {
		return g.failed("remove", err)
	}
	return nil
}

func (g *Group) remove(ctx context.Context, options RemoveOptions) error {
	between := patience()
	for began := false; ; began = true {
		emptied, err := g.store.ModifyMembership(ctx, g.key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			if active := activeOf(r); active != nil && !options.Force {
				return r, active
			}
			if r.NoReplay && !g.replays {
				return r, &ReplayError{}
			}
			members := slices.Collect(maps.Keys(r.Members))
			return r.Leave(members[:min(len(members), checkpoint.MaxLeaving)]...).Pause(), nil
		})
		if began && errors.Is(err, ErrNoGroup) {
			return nil // another operator has removed it
		}
		if err != nil {
			return err
		}
		if len(emptied.Members) > 0 {
			continue
		}
		if err = g.store.RemoveMembership(ctx, g.key, emptied, g.journal.Config.Now()); !errors.Is(err, checkpoint.ErrMembershipChanged) {
			return err
		}
		// A member has joined, which the next round finds, or has sent a heartbeat.
		if !retry.Sleep(ctx, between.NextBackOff()) {
			return ctx.Err()
		}
	}
}
