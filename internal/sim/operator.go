package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/groups"
	"github.com/millrace-dev/millrace/journal"
)

// operate pauses a group from time to time, and resumes it, until ctx ends. It may leave one paused.
func (w *world) operate(ctx context.Context, j *journal.Journal, r *rand.Rand) {
	g := groups.New(j)
	for ctx.Err() == nil {
		pauseFor(ctx, exponential(r, 10*time.Second))
		group, topic := pick(r, w.plan.groups...).name, pick(r, w.plan.topics...)
		if g.Pause(ctx, group, topic) != nil {
			continue // bad weather, or nobody has joined it yet
		}
		w.oracle.note("pause", group)
		// Who has lost its lease to a thief works on unknown to all.
		if w.plan.troubles.theft == 0 && waitIdle(ctx, g, group, topic) == nil {
			w.oracle.rest(group, topic, true)
		}
		pauseFor(ctx, rand64(r, 5*time.Second))
		w.oracle.rest(group, topic, false)
		if g.Resume(ctx, group, topic) == nil {
			w.oracle.note("resume", group)
		}
	}
}

// waitIdle does not wait for members that nobody else can give up.
func waitIdle(ctx context.Context, g *groups.Groups, group, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return g.WaitIdle(ctx, group, topic)
}

// resumeAll resumes all groups.
func (w *world) resumeAll(ctx context.Context, g *groups.Groups) error {
	for _, group := range w.plan.groups {
		for _, topic := range w.plan.topics {
			if err := g.Resume(ctx, group.name, topic); err != nil && !errors.Is(err, groups.ErrNoGroup) {
				return err
			}
		}
	}
	return nil
}
