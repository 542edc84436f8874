package groups

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Removal configures [Groups.Remove].
type Removal struct {
	// Force also removes a group that has members. A member that is alive creates the group again
	// when it notices the removal. The new group begins at the member's subscriber.Config.Start.
	Force bool
	// Progress, if set, is called with the number of rows that each request has deleted.
	Progress func(rows int)
}

// Remove removes a group and all its rows. If a group with the same name subscribes later, it is a
// new group.
//
// Without Force it refuses a group with members, with an [*ActiveError]. A member that crashed
// counts until another member has missed its heartbeats for the time of a lease. If it was the last
// member, use Force.
//
// Remove pauses the group, deletes its rows, and then deletes the group. If it fails before the
// end, the group is paused; call Remove again. It costs what [Groups.CleanUp] costs. A few bytes
// stay: the value of Resets with which a new group of this name would begin.
//
// Errors: [*ActiveError], [ErrNoGroup], [ErrCorrupt], and the errors of the journal and the
// context.
func (g *Groups) Remove(ctx context.Context, group, topic string, removal Removal) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	if err := g.remove(ctx, k, removal); err != nil {
		return failed("remove", k, err)
	}
	return nil
}

func (g *Groups) remove(ctx context.Context, k checkpoint.Key, removal Removal) error {
	between := patience()
	for began := false; ; began = true {
		emptied, err := g.store.ModifyMembership(ctx, k, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			if active := activeOf(r); active != nil && !removal.Force {
				return r, active
			}
			for number := range r.Members {
				r = r.Leave(number)
			}
			return r.Pause(), nil
		})
		if began && errors.Is(err, ErrNoGroup) {
			return nil // another operator has removed it
		}
		if err != nil {
			return err
		}
		if err := g.removeRows(ctx, k, emptied.Resets+1, removal.Progress); err != nil {
			return err
		}
		if err = g.store.RemoveMembership(ctx, k, emptied); !errors.Is(err, checkpoint.ErrMembershipChanged) {
			return err
		}
		// A member has joined, which the next round finds, or has sent a heartbeat.
		if !sleep(ctx, between.NextBackOff()) {
			return ctx.Err()
		}
	}
}
