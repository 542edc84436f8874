package groups

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// Behind is an aggregate that has events which its group has not handled.
type Behind struct {
	Aggregate aggregate.ID
	// Next is the number of the event that it waits with, and Head the highest that was known when
	// it was listed, or that of the last event where [Groups.Lag] returned it. Next is 0 for one
	// that is not parked of a group whose positions cannot be read, see [WithPositions].
	Next, Head uint64
	// Parked is nil for one that is tried again and again.
	Parked *Parked
}

// Parked is why the events of an aggregate wait for [Groups.Unpark] or [Groups.Skip].
type Parked struct {
	Number uint64 // of the event that failed
	At     time.Time
	Reason string
	// EventType is that of the event. Only [Groups.SelectParked] sets it. It is empty where the
	// event cannot be read, or a foreign program wrote it.
	EventType string
}

// Behind returns the aggregates that hold a group up, parked ones among them, by shard and id:
// those that it is not done with though it is with later events of the shard. One that is blocked
// is listed after some time, subscriber.Config.BehindAfter, once there are later events;
// [LagOptions].Behind shows it at once.
//
// It costs one read unit for some 40 aggregates, at least for each shard, and one for each
// aggregate.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Behind(ctx context.Context, group, topic string) ([]Behind, error) {
	k := checkpoint.Key{Group: group, Topic: topic}
	roster, err := g.roster(ctx, k)
	var all []Behind
	for number := 0; err == nil && number < g.journal.Shards(); number++ {
		var behind []Behind
		behind, err = g.behind(ctx, k, roster, number)
		all = append(all, behind...)
	}
	if err != nil {
		return nil, failed("list those behind of", k, err)
	}
	return all, nil
}

// Parked returns the aggregates that a group has given up until someone decides. It costs what
// Behind does. [Groups.SelectParked] selects some of them, and reads the types of their events.
//
// Errors: those of Behind.
func (g *Groups) Parked(ctx context.Context, group, topic string) ([]Behind, error) {
	all, err := g.Behind(ctx, group, topic)
	return slices.DeleteFunc(all, func(b Behind) bool { return b.Parked == nil }), err
}

func (g *Groups) behind(ctx context.Context, k checkpoint.Key, r checkpoint.Roster, number int) ([]Behind, error) {
	shard := shardOf(k, r, number)
	progress, err := g.store.Progress(ctx, shard)
	if err != nil {
		return nil, err
	}
	positions, err := g.positions(ctx, shard, r, idsOf(progress.Behind), true)
	unknown := errors.Is(err, ErrElsewhere)
	if err != nil && !unknown {
		return nil, err
	}
	all := make([]Behind, len(progress.Behind))
	for i, listed := range progress.Behind {
		position, found := positions[listed.Aggregate]
		if !found && !unknown {
			if position, err = g.baseline(ctx, listed.Aggregate, r.Start); err != nil {
				return nil, err
			}
		}
		all[i] = behindOf(position, listed)
		if unknown && listed.Parked == nil {
			all[i].Next = 0
		}
	}
	return all, nil
}

func behindOf(position uint64, listed checkpoint.Behind) Behind {
	b := Behind{Aggregate: listed.Aggregate, Next: nextOf(position, listed), Head: listed.Head}
	if parked := listed.Parked; parked != nil {
		b.Parked = &Parked{Number: parked.Number, At: parked.At, Reason: parked.Reason}
	}
	return b
}

// nextOf is the number of the event that an aggregate waits with. A parked one has acked all events
// before, also where that was not stored yet.
func nextOf(position uint64, listed checkpoint.Behind) uint64 {
	if listed.Parked != nil {
		return max(position+1, listed.Parked.Number)
	}
	return position + 1
}

func idsOf(listed []checkpoint.Behind) []aggregate.ID {
	ids := make([]aggregate.ID, len(listed))
	for i, b := range listed {
		ids[i] = b.Aggregate
	}
	return ids
}

// baseline is where a group begins with an aggregate that it has no position on.
func (g *Groups) baseline(ctx context.Context, id aggregate.ID, start time.Time) (uint64, error) {
	if start.IsZero() {
		return 0, nil
	}
	head, err := g.journal.Raw().Head(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return g.store.Baseline(ctx, head, start)
}
