package groups

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Pause pauses a group: it delivers no messages until [Group.Resume]. This includes members that
// join later. Pause returns at once. Members see the pause within a quarter of
// subscriber.Timing.LeaseDuration, and then stop as on Close: handlers have
// subscriber.Config.CloseTimeout to ack their messages. [Group.WaitIdle] waits for that. If the
// group is already paused or stopped (subscriber.Stop), nothing changes.
//
// Errors: [ErrNoGroup], [ErrCorrupt], and the errors of the journal and the context.
func (g *Group) Pause(ctx context.Context) error {
	return g.pause(ctx, "pause", checkpoint.Membership.Pause)
}

// Resume makes a paused group continue at its positions. Members see it within a quarter of
// subscriber.Timing.LeaseDuration. A group that was stopped (subscriber.Stop) tries the event that
// has stopped it again, and counts its attempts from the start.
//
// Errors: those of Pause.
func (g *Group) Resume(ctx context.Context) error {
	return g.pause(ctx, "resume", checkpoint.Membership.Resume)
}

func (g *Group) pause(ctx context.Context, what string, change func(checkpoint.Membership) checkpoint.Membership) error {
	_, err := g.store.ModifyMembership(ctx, g.key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return change(r), nil })
	if err != nil {
		return g.failed(what, err)
	}
	return nil
}

// activeOf returns an ActiveError if the group has members. Operators do not count, since they hold
// a shard only for a moment, or until a member wants it.
func activeOf(r checkpoint.Membership) *ActiveError {
	var active ActiveError
	for _, m := range statusOf(checkpoint.Key{}, r, time.Time{}).Members {
		if !m.Operator {
			active.Members = append(active.Members, m.Number)
			active.Shards = append(active.Shards, r.Of(m.Number)...)
		}
	}
	if len(active.Members) == 0 {
		return nil
	}
	return &active
}
