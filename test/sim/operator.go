package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/draw"
)

// operator pauses groups, and decides about events that keep failing.
type operator struct {
	world  *world
	groups *groups.Groups
	random *rand.Rand
}

func (w *world) newOperator(ctx context.Context, name string, random *rand.Rand) (*operator, error) {
	wire := w.wire(&member{name: name}, draw.Derive(random))
	j, err := w.open(ctx, wire.client(w.db), &clock{})
	if err != nil {
		return nil, err
	}
	return &operator{world: w, groups: groups.New(j), random: draw.Derive(random)}, nil
}

// work works on one group after the other, until ctx ends. It may leave a group paused, stopped, or
// with parked aggregates.
func (o *operator) work(ctx context.Context) {
	plan := o.world.plan
	every, pauses := 10*time.Second, 1.0
	if plan.anybodyWaits() {
		every, pauses = 2*time.Second, 0.2
	}
	for ctx.Err() == nil {
		pauseFor(ctx, exponential(o.random, every))
		group, topic := &plan.groups[o.random.IntN(len(plan.groups))], draw.Pick(o.random, plan.topics...)
		if plan.operators && o.random.Float64() < pauses {
			o.pause(ctx, group.name, topic)
		} else if group.failures.waits() {
			o.tend(ctx, group, topic)
		}
	}
}

// pause pauses a group for a while.
func (o *operator) pause(ctx context.Context, group, topic string) {
	w, g := o.world, o.groups.Of(group, topic)
	if g.Pause(ctx) != nil {
		return // a fault, or no member has joined yet
	}
	w.oracle.note("pause", group)
	// A member that lost its lease to a thief or an operator still works, and no other member
	// knows.
	if w.plan.troubles.theft == 0 && !w.wasEdited(2*w.plan.longestLease()) && waitIdle(ctx, g) == nil {
		w.oracle.rest(group, topic, true)
	}
	pauseFor(ctx, draw.UpTo(o.random, 5*time.Second))
	w.oracle.rest(group, topic, false)
	if g.Resume(ctx) == nil {
		w.oracle.note("resume", group)
	}
}

// tend resumes a group that waits: the failed event is repaired, skipped, or fails again.
func (o *operator) tend(ctx context.Context, group *groupPlan, topic string) {
	for _, event := range o.waiting(ctx, group, topic) {
		skipped := false
		switch u := o.random.IntN(4); {
		case u == 0:
		// A saga may have taken a step on it.
		case u == 1 && !group.handlers.sagas:
			end := o.delayRequests(ctx, group.name)
			o.world.touch()
			skipped = o.groups.Skip(ctx, group.name, event.id, event.number) == nil
			o.world.touch()
			end()
		default:
			o.world.oracle.note("repair", group.name)
			o.world.repair(stream{group.name, topic, event.id.Value}, event.number)
		}
		o.release(ctx, group, event.id, skipped)
	}
}

// failing is an event for which a group waits.
type failing struct {
	id     aggregate.ID
	number uint64
}

// waiting returns the events for which a group waits, as far as they can be read.
func (o *operator) waiting(ctx context.Context, group *groupPlan, topic string) (events []failing) {
	g := o.groups.Of(group.name, topic)
	switch group.failures.policy {
	case stops:
		if s, err := g.Status(ctx); err == nil && s.Paused && s.Stopped != nil {
			return []failing{{s.Stopped.Aggregate, s.Stopped.Number}}
		}
	case parks:
		for b, err := range g.Parked(ctx, aggregate.ID{}) {
			if err == nil {
				events = append(events, failing{b.Aggregate, b.Parked.Number})
			}
		}
	}
	return events
}

// release resumes the group.
func (o *operator) release(ctx context.Context, group *groupPlan, id aggregate.ID, skipped bool) {
	switch {
	case group.failures.policy == stops:
		if o.groups.Of(group.name, id.Type).Resume(ctx) == nil {
			o.world.oracle.note("resume stopped", group.name)
		}
	case !skipped: // or it is not parked any more
		o.world.touch()
		if o.groups.Unpark(ctx, group.name, id) == nil {
			o.world.oracle.note("unpark", group.name)
		}
		o.world.touch()
	}
}

// releaseAll resumes all waiting groups, until ctx ends.
func (o *operator) releaseAll(ctx context.Context) {
	for ctx.Err() == nil {
		for i := range o.world.plan.groups {
			group := &o.world.plan.groups[i]
			for _, topic := range o.world.plan.topics {
				for _, event := range o.waiting(ctx, group, topic) {
					o.release(ctx, group, event.id, false)
				}
			}
		}
		pauseFor(ctx, 2*time.Second)
	}
}

// waitIdle waits until a group is idle, for at most 30 seconds. A member that cannot be evicted can
// keep a group from becoming idle for longer.
func waitIdle(ctx context.Context, g *groups.Group) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return g.WaitIdle(ctx)
}

// reconcileAll makes all groups compare all aggregates.
func (o *operator) reconcileAll(ctx context.Context) error {
	for _, group := range o.world.plan.groups {
		for _, topic := range o.world.plan.topics {
			if err := o.groups.Of(group.name, topic).Reconcile(ctx); err != nil && !errors.Is(err, groups.ErrNoGroup) {
				return err
			}
		}
	}
	return nil
}

// resumeAll resumes all groups.
func (o *operator) resumeAll(ctx context.Context) error {
	for _, group := range o.world.plan.groups {
		for _, topic := range o.world.plan.topics {
			if err := o.groups.Of(group.name, topic).Resume(ctx); err != nil && !errors.Is(err, groups.ErrNoGroup) {
				return err
			}
		}
	}
	return nil
}
