package groups

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Pause has a group do nothing until [Groups.Resume], also with members that join later. It returns
// at once; members learn of it within a quarter of subscriber.Config.LeaseDuration, and then stop
// as they do on Close: handlers have subscriber.Config.CloseTimeout to ack what they have.
// [Groups.WaitIdle] waits for that. A group that is paused or stopped (subscriber.Stop) stays so.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Pause(ctx context.Context, group, topic string) error {
	return g.pause(ctx, "pause", checkpoint.Key{Group: group, Topic: topic}, checkpoint.Membership.Pause)
}

// Resume has a paused group go on where it is. Members learn of it within a quarter of
// subscriber.Config.LeaseDuration. One that was stopped (subscriber.Stop) tries the event that
// stopped it again, and counts attempts from the start.
//
// Errors: those of Pause.
func (g *Groups) Resume(ctx context.Context, group, topic string) error {
	return g.pause(ctx, "resume", checkpoint.Key{Group: group, Topic: topic}, checkpoint.Membership.Resume)
}

func (g *Groups) pause(ctx context.Context, what string, k checkpoint.Key, change func(checkpoint.Membership) checkpoint.Membership) error {
	_, err := g.store.ModifyMembership(ctx, k, func(r checkpoint.Membership) (checkpoint.Membership, error) { return change(r), nil })
	if err != nil {
		return failed(what, k, err)
	}
	return nil
}

// activeOf returns an ActiveError if the group has members. Operators do not count: they hold a
// shard for a moment, or as long as no member wants it.
func activeOf(r checkpoint.Membership) *ActiveError {
	var active ActiveError
	for _, m := range groupOf(checkpoint.Key{}, r, time.Time{}).Members {
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

// sleep returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
