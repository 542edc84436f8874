package groups

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Removal says how [Groups.Remove] removes a group.
type Removal struct {
	// Force removes also a group that has members. One that lives begins the group again as soon as
	// it learns of it, where its subscriber.Config.Start says.
	Force bool
	// Progress, if any, is told how many rows each request deleted.
	Progress func(rows int)
}

// Remove removes a group and all its rows. A group of the same name that subscribes later begins as
// a new one.
//
// It refuses a group with members with an [*ActiveError], unless it is forced to. A member that
// crashed counts until another one has missed it for the time of a lease; if it was the last one,
// remove with Force.
//
// It pauses the group first, deletes all its rows, and the group itself at last: what ends early
// leaves a paused group, and is called again. It costs what [Groups.CleanUp] does. A few bytes
// stay: the Resets with which a group of that name would begin.
//
// Errors: [*ActiveError], [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
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
			return nil // someone else removed it too
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
		// Members have joined, which the next round finds; a beat of one is in the way for a moment
		// only.
		if !sleep(ctx, between.NextBackOff()) {
			return ctx.Err()
		}
	}
}
