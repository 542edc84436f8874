package groups

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Lag counts the events that a group has not handled, in total or in one shard.
type Lag struct {
	// Events is the number of events that are not handled, including events of parked aggregates.
	// It does not include events that were truncated or deleted, or that occurred before the
	// group's start. It includes events of types that the group leaves out
	// (subscriber.Config.EventTypes), until the position is beyond them.
	Events uint64
	// Aggregates is the number of aggregates with such events.
	Aggregates int
	// Parked is the number of parked aggregates, and ParkedEvents is the number of their events.
	Parked       int
	ParkedEvents uint64 // the events of parked aggregates that are not handled
	// Blocked is the number of aggregates that [Group.Behind] lists and that are not parked: an
	// event has failed and is tried again, or its handler takes long. It does not include a blocked
	// aggregate that is not listed, because its shard has no later events.
	Blocked int
	// Slow is the number of the blocked aggregates whose next event has not failed: its handler
	// takes long, or it waits for its first attempt by a new owner.
	Slow int
	// Oldest is the time at which the oldest of the events occurred. It is zero if there is none.
	Oldest time.Time
	// AtLeast reports that there may be more events or older events.
	AtLeast bool
}

// Age returns the age of the oldest event, 0 if there is none.
func (l Lag) Age(now time.Time) time.Duration {
	if l.Oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(l.Oldest))
}

func (l *Lag) add(more Lag) {
	l.Events += more.Events
	l.Aggregates += more.Aggregates
	l.Parked += more.Parked
	l.ParkedEvents += more.ParkedEvents
	l.Blocked += more.Blocked
	l.Slow += more.Slow
	l.AtLeast = l.AtLeast || more.AtLeast
	l.older(more.Oldest)
}

// block counts a listed aggregate that is not parked.
func (l *Lag) block(position uint64, listed checkpoint.Behind) {
	l.Blocked++
	if listed.Failure == nil || listed.Failure.Number <= position {
		l.Slow++
	}
}

func (l *Lag) older(at time.Time) {
	if !at.IsZero() && (l.Oldest.IsZero() || at.Before(l.Oldest)) {
		l.Oldest = at
	}
}

// ShardLag is the lag of a group in one shard.
type ShardLag struct {
	Shard int // the number of the shard, from 0
	Lag
}

// GroupLag is the lag of a group.
type GroupLag struct {
	Lag               // the sum over all shards
	Shards []ShardLag // by number
}

func (l *GroupLag) add(shard ShardLag) {
	l.Shards = append(l.Shards, shard)
	l.Lag.add(shard.Lag)
}

// LagOptions configures [Group.Lag]. The zero value is suitable for most uses.
type LagOptions struct {
	// OldestOf limits the number of aggregates in each shard whose first unhandled event is read to
	// find its time. If more aggregates have unhandled events, the result has AtLeast set, since
	// the oldest event may belong to one of the others. Default: 1,000. Negative means none.
	OldestOf int
	// Corrupt, if set, is called for each head and event that cannot be read. Such a head does not
	// count. Such an event counts, but its time is unknown.
	Corrupt func(*journal.CorruptItemError)
	// Behind, if set, is called for each aggregate with unhandled events, also for aggregates that
	// [Group.Behind] does not list.
	Behind func(BehindAggregate)
	// Progress, if set, is called after each page of heads, with the number of aggregates that have
	// been compared, and the number of shards in which all have been compared.
	Progress func(aggregates, shards int)
}

func (o *LagOptions) setDefaults() {
	if o.OldestOf == 0 {
		o.OldestOf = 1000
	}
	if o.Corrupt == nil {
		o.Corrupt = func(*journal.CorruptItemError) {}
	}
	if o.Behind == nil {
		o.Behind = func(BehindAggregate) {}
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
}

// Lag returns the exact lag of a group: it compares the heads of all aggregates with the group's
// positions. It makes eventually consistent reads, so the result may not include the changes of the
// last moment, or of the time in which it runs. Positions are stored a little after the ack
// (subscriber.Timing.CommitInterval).
//
// It costs half a read unit for each 4 KB of the topic's rows in the snapshot table, including
// states. In the packed layout it costs instead half a read unit or more for each aggregate, since
// it reads the aggregate's last item. To this add:
//
//   - half a read unit for about 40 positions, or for each 4 KB of each row of a projection.Rows;
//   - one read unit for each aggregate with unhandled events, up to LagOptions.OldestOf for each
//     shard;
//   - for a group with a start, about log2(n) read units for each aggregate of n events without a
//     position;
//   - for external positions, a read of their store for each aggregate ([WithPositions]).
//
// Memory does not grow with the table.
//
// Errors: [ErrNoGroup], [ErrExternalPositions], [ErrCorrupt], and the errors of the journal and the
// context.
func (g *Group) Lag(ctx context.Context, options LagOptions) (GroupLag, error) {
	options.setDefaults()
	membership, err := g.membership(ctx)
	if err == nil {
		err = g.readable(membership)
	}
	var sum GroupLag
	compared := 0
	for number := 0; err == nil && number < g.journal.Config.Shards; number++ {
		comparison := comparison{group: g, shard: shardOf(g.key, membership, number), membership: membership, options: options}
		comparison.compared = func(aggregates int) {
			compared += aggregates
			options.Progress(compared, number)
		}
		if err = comparison.run(ctx); err == nil {
			sum.add(ShardLag{Shard: number, Lag: comparison.lag})
			options.Progress(compared, number+1)
		}
	}
	if err != nil {
		return GroupLag{}, g.failed("read the lag of", err)
	}
	return sum, nil
}

// comparison compares heads and positions of one shard.
type comparison struct {
	group      *Group
	shard      checkpoint.Shard
	membership checkpoint.Membership
	options    LagOptions
	compared   func(aggregates int)

	listed map[aggregate.ID]checkpoint.Behind
	dated  int // aggregates whose first unhandled event was read
	lag    Lag
}

func (c *comparison) run(ctx context.Context) error {
	progress, err := c.group.store.Progress(ctx, c.shard)
	if err != nil {
		return err
	}
	c.listed = map[aggregate.ID]checkpoint.Behind{}
	for _, b := range progress.Behind {
		c.listed[b.Aggregate] = b
	}
	for aggregates, err := range c.group.store.In(c.membership.Rows).AggregateProgress(ctx, c.shard, aggregate.ID{}, c.options.Corrupt) {
		if err != nil {
			return err
		}
		if err := c.page(ctx, aggregates); err != nil {
			return err
		}
		c.compared(len(aggregates))
	}
	return nil
}

func (c *comparison) page(ctx context.Context, aggregates []checkpoint.AggregateProgress) error {
	err := inParallel(readers, len(aggregates), func(i int) (err error) {
		s := &aggregates[i]
		if c.membership.ExternalPositions {
			s.Position, s.Found, err = c.group.external.Position(ctx, subscriber.GroupKey(c.shard.Group), s.Head.Aggregate)
		}
		if err == nil && !s.Found {
			s.Position, err = c.group.store.Baseline(ctx, s.Head, c.membership.Start)
		}
		return err
	})
	if err != nil {
		return err
	}
	var first []place
	for _, s := range aggregates {
		done := s.Position
		if s.Head.TruncatedBefore > 0 {
			done = max(done, s.Head.TruncatedBefore-1)
		}
		if done >= s.Head.Version {
			continue
		}
		events := s.Head.Version - done
		c.lag.Events += events
		c.lag.Aggregates++
		listed, isListed := c.listed[s.Head.Aggregate]
		switch {
		case listed.Parked != nil:
			c.lag.Parked++
			c.lag.ParkedEvents += events
		case isListed:
			c.lag.block(done, listed)
		}
		listed.Aggregate, listed.Head = s.Head.Aggregate, s.Head.Version
		c.options.Behind(behindOf(done, s.Found, c.membership.Rows, listed))
		if c.dated >= c.options.OldestOf {
			c.lag.AtLeast = true
			continue
		}
		c.dated++
		first = append(first, place{s.Head.Aggregate, done + 1})
	}
	oldest, err := c.group.oldest(ctx, first, c.options.Corrupt)
	c.lag.older(oldest)
	return err
}

// place is the aggregate and the number of an event.
type place struct {
	id     aggregate.ID
	number uint64
}

// oldest returns the time of the oldest of some events. It costs one read unit for each 4 KB.
func (t tables) oldest(ctx context.Context, events []place, corrupt func(*journal.CorruptItemError)) (time.Time, error) {
	times := make([]time.Time, len(events))
	unreadable := make([]*journal.CorruptItemError, len(events))
	err := inParallel(readers, len(events), func(i int) error {
		for record, err := range t.journal.Raw().Events(ctx, events[i].id, events[i].number, events[i].number) {
			switch {
			case errors.As(err, &unreadable[i]), errors.As(err, new(*journal.TruncatedError)):
			case err != nil:
				return err
			default:
				times[i] = record.OccurredAt
			}
		}
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	var lag Lag
	for i, at := range times {
		lag.older(at)
		if unreadable[i] != nil {
			corrupt(unreadable[i])
		}
	}
	return lag.Oldest, nil
}
