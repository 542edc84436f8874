package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// BehindAggregate is an aggregate with events that its group has not handled.
type BehindAggregate struct {
	Aggregate aggregate.ID
	// Next is the number of the next event to handle. It is 0 if it is unknown: the aggregate is
	// not parked, and the group has external positions that cannot be read (see [WithPositions]).
	//
	// Head is the number of the last event. From [Group.Behind] it is the highest number that was
	// known when the entry of the aggregate was written, or the last event if Next is beyond that.
	Next, Head uint64
	// Parked is nil if the aggregate is not parked.
	Parked *Parked
	// Failure is the last failed attempt at the event Next that was known when the aggregate's
	// entry on the list was written. Later attempts change it only when the member ends or gives up
	// the shard. It is nil if the aggregate is parked or not on the list, or if no attempt had
	// failed by then, as when a handler takes long. It is also nil if the failed event was handled
	// since.
	Failure *Failure
}

// Failure is a failed attempt at an event.
type Failure struct {
	Number uint64    // number of the event
	At     time.Time // time of the attempt
	// Reason is the error, and how often the event had failed (with Block and Stop since the last
	// change of the shard's owner), such as "connection refused, 3 times". The error is the
	// handler's error if the handler reports it (subscriber.NackReason).
	// Limit: 300 bytes, or 1 KB if the aggregate is parked.
	Reason string
	// Due is the time of the next attempt, if the group works in bursts (subscriber.Burst).
	Due time.Time
	// Attempts is the number of failed attempts, 0 if it was not stored.
	Attempts int
	// Resumed is how often the group was resumed when the attempts were counted.
	Resumed uint64
	// Begun says that the last attempt has begun in a burst, and that its result is not known.
	Begun bool
}

// Parked is the failure for which an aggregate was parked. Its events wait for [Groups.Unpark] or
// [Groups.Skip].
type Parked struct {
	Failure
	// EventType is the type of the failed event. Only [Group.SelectParked] sets it. It is empty if
	// the event cannot be read, or if a foreign program wrote it.
	EventType string
}

// Behind yields the aggregates that are blocked or parked, in the order of shard and id. These are
// aggregates with events that the group has not handled, although it has handled later events of
// the shard. A blocked aggregate is listed after subscriber.Timing.BehindAfter, if the shard has
// later events. [LagOptions].Behind reports it at once.
//
// The sequence begins with the first aggregate that follows the aggregate after in this order. The
// zero ID means the beginning. The aggregate after need not be listed. To read the next page of a
// list, pass the last aggregate of the page before. The number of aggregates is not limited.
//
// It reads as the sequence is consumed, in pages of 25 aggregates that grow to 100. It costs one
// read unit for the group, one for about 40 entries, at least one for each page and each shard, and
// one for each aggregate. It also costs a [journal.Journal.Version] for an aggregate whose known
// events were handled since its entry was written.
//
// The sequence ends after an error. Errors: [ErrNoGroup], [ErrCorrupt],
// [*aggregate.InvalidIDError] if after is not an aggregate of the topic, and the errors of the
// journal and the context.
func (g *Group) Behind(ctx context.Context, after aggregate.ID) iter.Seq2[BehindAggregate, error] {
	list := list{group: g, after: after, what: "list blocked and parked aggregates of"}
	return list.all(ctx, func(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, listed []checkpoint.Behind) ([]BehindAggregate, error) {
		all, err := g.behind(ctx, r, shard, listed)
		if err != nil {
			return nil, err
		}
		return g.unfinished(ctx, all)
	})
}

// unfinished returns the aggregates with events that the group has not handled. An entry stays on
// the list until the owner of the shard has removed it, and its Head does not change meanwhile. So
// the version decides if Next is beyond Head. An aggregate whose head is corrupt is returned.
func (t tables) unfinished(ctx context.Context, all []BehindAggregate) ([]BehindAggregate, error) {
	done := map[aggregate.ID]bool{}
	var mu sync.Mutex
	err := inParallel(readers, len(all), func(i int) error {
		b := &all[i]
		if b.Parked != nil || b.Next <= b.Head {
			return nil
		}
		version, err := t.version(ctx, b.Aggregate)
		if errors.As(err, new(*journal.CorruptItemError)) {
			return nil
		}
		if b.Head = max(b.Head, version); err == nil && b.Next > b.Head {
			mu.Lock()
			defer mu.Unlock()
			done[b.Aggregate] = true
		}
		return err
	})
	return slices.DeleteFunc(all, func(b BehindAggregate) bool { return done[b.Aggregate] }), err
}

// Parked yields the parked aggregates of a group, in the order of [Group.Behind]. The parameter
// after has the same meaning as there. [Group.SelectParked] selects some of them, and also returns
// the types of their events.
//
// It costs what Behind costs, but blocked aggregates cost only the read of the list.
//
// Errors: those of Behind.
func (g *Group) Parked(ctx context.Context, after aggregate.ID) iter.Seq2[BehindAggregate, error] {
	list := list{group: g, after: after, what: "list parked aggregates of"}
	return list.all(ctx, func(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, listed []checkpoint.Behind) ([]BehindAggregate, error) {
		parked := slices.DeleteFunc(slices.Clone(listed), func(b checkpoint.Behind) bool { return b.Parked == nil })
		return g.behind(ctx, r, shard, parked)
	})
}

// list reads a group's list of blocked and parked aggregates.
type list struct {
	group *Group
	after aggregate.ID // zero for the beginning
	what  string       // for errors
}

// describer returns the values to yield for some entries of one shard.
type describer func(context.Context, checkpoint.Membership, checkpoint.Shard, []checkpoint.Behind) ([]BehindAggregate, error)

// describedAtOnce is the maximum number of entries that are described at once.
const describedAtOnce = 100

func (l list) all(ctx context.Context, describe describer) iter.Seq2[BehindAggregate, error] {
	return func(yield func(BehindAggregate, error) bool) {
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
			yield(BehindAggregate{}, l.group.failed(l.what, err))
		}
	}
}

// pages passes the entries to visit until it returns false or an error.
func (l list) pages(ctx context.Context, visit func(checkpoint.Membership, checkpoint.Shard, []checkpoint.Behind) (bool, error)) error {
	membership, err := l.group.membership(ctx)
	if err != nil {
		return err
	}
	first, err := l.group.firstShard(l.after)
	if err != nil {
		return err
	}
	after := l.after
	for number := first; number < l.group.journal.Config.Shards; number++ {
		shard := shardOf(l.group.key, membership, number)
		for page, err := range l.group.store.BehindAfter(ctx, shard, after) {
			if err != nil {
				return err
			}
			for some := range slices.Chunk(page, describedAtOnce) {
				if more, err := visit(membership, shard, some); !more || err != nil {
					return err
				}
			}
		}
		after = aggregate.ID{}
	}
	return nil
}

// firstShard returns the shard in which a list that begins after an aggregate starts.
func (g *Group) firstShard(after aggregate.ID) (int, error) {
	if after == (aggregate.ID{}) {
		return 0, nil
	}
	if err := after.Validate(); err != nil {
		return 0, err
	}
	if after.Type != g.key.Topic {
		return 0, &aggregate.InvalidIDError{ID: after, Reason: fmt.Sprintf("the list is of topic %q: continue after an aggregate of that type", g.key.Topic)}
	}
	return g.journal.Shard(after), nil
}

// behind returns the aggregates of some entries of a shard, with the next event of each.
func (t tables) behind(ctx context.Context, r checkpoint.Membership, shard checkpoint.Shard, entries []checkpoint.Behind) ([]BehindAggregate, error) {
	positions, err := t.positions(ctx, shard, r, idsOf(entries), true)
	unknown := errors.Is(err, ErrExternalPositions)
	if err != nil && !unknown {
		return nil, err
	}
	all := make([]BehindAggregate, len(entries))
	for i, listed := range entries {
		position, found := positions[listed.Aggregate]
		if !found && !unknown {
			if position, err = t.baseline(ctx, listed.Aggregate, r.Start); err != nil {
				return nil, err
			}
		}
		all[i] = behindOf(position, found, r.Rows, listed)
		if unknown && listed.Parked == nil {
			all[i].Next = 0
		}
	}
	return all, nil
}

func behindOf(position uint64, found bool, rows *checkpoint.Rows, listed checkpoint.Behind) BehindAggregate {
	b := BehindAggregate{Aggregate: listed.Aggregate, Next: nextOf(position, found, rows, listed), Head: listed.Head}
	switch parked, failure := listed.Parked, listed.Failure; {
	case parked != nil:
		b.Parked = &Parked{Failure: Failure(*parked)}
	case failure != nil && failure.Number > position:
		b.Failure = (*Failure)(failure)
	}
	return b
}

// nextOf returns the number of the next event to handle. All events before the event for which an
// aggregate was parked are acked, even if that position is not stored yet. If the row that holds
// the position was deleted, their effects are gone too.
func nextOf(position uint64, found bool, rows *checkpoint.Rows, listed checkpoint.Behind) uint64 {
	deleted := rows != nil && !found
	if listed.Parked != nil && !deleted {
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

// baseline returns the position with which a group begins in an aggregate without a position.
func (t tables) baseline(ctx context.Context, id aggregate.ID, start time.Time) (uint64, error) {
	if start.IsZero() {
		return 0, nil
	}
	head, err := t.journal.Raw().Head(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return t.store.Baseline(ctx, head, start)
}
