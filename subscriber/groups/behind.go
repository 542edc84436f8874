package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	// Failure is the last failed attempt at the event Next, as of when the aggregate's entry on the
	// list was written: later attempts do not show. It is nil for an aggregate that is parked or
	// not on the list. It is also nil if no attempt had failed by then, as where the handler takes
	// long, if the failed event was handled since, and if an earlier version wrote the entry.
	Failure *Failure
}

// Failure is a failed attempt at an event.
type Failure struct {
	Number uint64 // of the event
	At     time.Time
	// Reason is the error and how often the event had failed since its member took over the shard,
	// such as "connection refused, 3 times". The error is that of the handler if it reports it
	// (subscriber.NackReason). It is cut to 300 bytes, or to 1 KB if the aggregate is parked.
	Reason string
}

// Parked is why the events of an aggregate wait for [Groups.Unpark] or [Groups.Skip].
type Parked struct {
	Failure
	// EventType is that of the event. Only [Groups.SelectParked] sets it. It is empty where the
	// event cannot be read, or a foreign program wrote it.
	EventType string
}

// Behind yields the aggregates that hold a group up, parked ones among them, by shard and id: those
// that it is not done with though it is with later events of the shard. One that is blocked is
// listed after some time, subscriber.Config.BehindAfter, once there are later events;
// [LagOptions].Behind shows it at once.
//
// It begins with the first aggregate that follows after in this order, and with the zero ID at the
// beginning. The aggregate after need not be listed. To read the next page of a list, pass the last
// aggregate of the page before. The list has no limit.
//
// It reads as it is consumed, in pages of 25 aggregates that grow to 100. It costs one read unit
// for the group, one for some 40 aggregates, at least for each page and each shard that it visits,
// and one for each aggregate.
//
// After an error nothing more comes. Errors: [ErrNoGroup], [ErrCorrupt],
// [*aggregate.InvalidIDError] if after is not an aggregate of the topic, those of the journal, the
// context's.
func (g *Groups) Behind(ctx context.Context, group, topic string, after aggregate.ID) iter.Seq2[Behind, error] {
	list := list{groups: g, key: checkpoint.Key{Group: group, Topic: topic}, after: after, what: "list those behind of"}
	return list.all(ctx, g.behind)
}

// Parked yields the aggregates that a group has given up until someone decides, in the order of
// [Groups.Behind], and begins after an aggregate as that does. [Groups.SelectParked] selects some
// of them, and reads the types of their events.
//
// It costs what Behind does. Aggregates that are not parked cost only the read of the list.
//
// Errors: those of Behind.
func (g *Groups) Parked(ctx context.Context, group, topic string, after aggregate.ID) iter.Seq2[Behind, error] {
	list := list{groups: g, key: checkpoint.Key{Group: group, Topic: topic}, after: after, what: "list parked aggregates of"}
	return list.all(ctx, func(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, listed []checkpoint.Behind) ([]Behind, error) {
		parked := slices.DeleteFunc(slices.Clone(listed), func(b checkpoint.Behind) bool { return b.Parked == nil })
		return g.behind(ctx, r, shard, parked)
	})
}

// list reads the list of those behind of a group.
type list struct {
	groups *Groups
	key    checkpoint.Key
	after  aggregate.ID // zero for the beginning
	what   string       // for errors
}

// describer returns the values to yield for some entries of one shard.
type describer func(context.Context, checkpoint.Membership, checkpoint.Shard, []checkpoint.Behind) ([]Behind, error)

// describedAtOnce is how many entries are described at once, at most.
const describedAtOnce = 100

func (l list) all(ctx context.Context, describe describer) iter.Seq2[Behind, error] {
	return func(yield func(Behind, error) bool) {
		err := l.pages(ctx, func(r checkpoint.Membership, shard checkpoint.Shard, listed []checkpoint.Behind) (bool, error) {
			described, err := describe(ctx, r, shard, listed)
			for _, one := range described {
				if !yield(one, nil) {
					return false, nil
				}
			}
			return err == nil, err
		})
		if err != nil {
			yield(Behind{}, failed(l.what, l.key, err))
		}
	}
}

// pages passes the entries to visit until it returns false or an error.
func (l list) pages(ctx context.Context, visit func(checkpoint.Membership, checkpoint.Shard, []checkpoint.Behind) (bool, error)) error {
	roster, err := l.groups.roster(ctx, l.key)
	if err != nil {
		return err
	}
	first, err := l.groups.firstShard(l.key, l.after)
	if err != nil {
		return err
	}
	after := l.after
	for number := first; number < l.groups.journal.Shards(); number++ {
		shard := shardOf(l.key, roster, number)
		for page, err := range l.groups.store.BehindAfter(ctx, shard, after) {
			if err != nil {
				return err
			}
			for some := range slices.Chunk(page, describedAtOnce) {
				if more, err := visit(roster, shard, some); !more || err != nil {
					return err
				}
			}
		}
		after = aggregate.ID{}
	}
	return nil
}

// firstShard returns the shard of the first entry of a list that begins after an aggregate.
func (g *Groups) firstShard(k checkpoint.Key, after aggregate.ID) (int, error) {
	if after == (aggregate.ID{}) {
		return 0, nil
	}
	if err := after.Validate(); err != nil {
		return 0, err
	}
	if after.Type != k.Topic {
		return 0, &aggregate.InvalidIDError{ID: after, Reason: fmt.Sprintf("the list is of topic %q: continue after an aggregate of that type", k.Topic)}
	}
	return g.journal.Shard(after), nil
}

// behind returns the aggregates of some entries of a shard with their positions.
func (g *Groups) behind(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, entries []checkpoint.Behind) ([]Behind, error) {
	positions, err := g.positions(ctx, shard, r, idsOf(entries), true)
	unknown := errors.Is(err, ErrExternalPositions)
	if err != nil && !unknown {
		return nil, err
	}
	all := make([]Behind, len(entries))
	for i, listed := range entries {
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
	switch parked, failure := listed.Parked, listed.Failure; {
	case parked != nil:
		b.Parked = &Parked{Failure: Failure(*parked)}
	case failure != nil && failure.Number > position:
		b.Failure = (*Failure)(failure)
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
