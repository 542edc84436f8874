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

// Lag is how far a group is behind, in all or in one shard.
type Lag struct {
	// Events are those not handled yet, Parked ones among them. Events that were truncated or
	// deleted are not counted, nor those before the group's start; those of types that its
	// subscribers leave out are, until they have been passed over.
	Events uint64
	// Aggregates have such events.
	Aggregates int
	// Parked are the aggregates that wait until someone decides, and ParkedEvents their events.
	Parked       int
	ParkedEvents uint64
	// Blocked are the aggregates that [Groups.Behind] lists and that are not parked: an event of
	// them failed and is tried again, or its handler takes long. One that is not listed yet, as its
	// shard has no later events, does not count.
	Blocked int
	// Oldest is when the first of the events occurred, zero where there is none.
	Oldest time.Time
	// AtLeast: there are more events, or older ones, than were looked at.
	AtLeast bool
}

// Age is for how long the oldest event has been waiting, 0 where there is none.
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
	l.AtLeast = l.AtLeast || more.AtLeast
	l.older(more.Oldest)
}

func (l *Lag) older(at time.Time) {
	if !at.IsZero() && (l.Oldest.IsZero() || at.Before(l.Oldest)) {
		l.Oldest = at
	}
}

// ShardLag is how far a group is behind in one shard.
type ShardLag struct {
	Shard int
	Lag
}

// GroupLag is how far a group is behind.
type GroupLag struct {
	Lag               // the sum
	Shards []ShardLag // by number
}

func (l *GroupLag) add(shard ShardLag) {
	l.Shards = append(l.Shards, shard)
	l.Lag.add(shard.Lag)
}

// LagOptions are for [Groups.Lag]. The zero value suits most.
type LagOptions struct {
	// OldestOf bounds of how many aggregates of each shard the first unhandled event is read, to
	// tell how old it is. Where more are behind, the lag says AtLeast, for the oldest event may be
	// one of the others'. Default: 1,000; negative for none.
	OldestOf int
	// Corrupt, if any, is told of heads and events that cannot be read. Such a head does not count;
	// such an event does, but nobody knows how old it is.
	Corrupt func(*journal.CorruptItemError)
	// Behind, if any, is given each aggregate that has events to handle. It also shows those that
	// are not on the list of [Groups.Behind].
	Behind func(Behind)
	// Progress, if any, is told after each page of heads how many aggregates have been compared,
	// and in how many shards all.
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
		o.Behind = func(Behind) {}
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
}

// Lag returns exactly how far a group is behind: it compares the heads of all aggregates with its
// positions. What is handled and committed while it runs may show or not; so may what was a moment
// ago, for it reads eventually consistent. Positions are stored a little after the ack
// (subscriber.Config.CommitInterval).
//
// It costs half a read unit for each 4 KB of the snapshot table's part of the topic, states
// included, and as much for positions, some 40 to the unit; one read unit for each aggregate that
// is behind, up to LagOptions.OldestOf for each shard; and for a group that began at a time, about
// log2(n) for each aggregate that it has not looked at yet. In the packed layout, the heads cost
// half a read unit or more for each aggregate, since its last item is read. Memory does not grow
// with the table. Of a group with positions in a store of its own it looks there for each aggregate
// by itself ([WithPositions]).
//
// Errors: [ErrNoGroup], [ErrExternalPositions], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Lag(ctx context.Context, group, topic string, options LagOptions) (GroupLag, error) {
	options.setDefaults()
	k := checkpoint.Key{Group: group, Topic: topic}
	roster, err := g.roster(ctx, k)
	if err == nil {
		err = g.readable(roster)
	}
	var sum GroupLag
	compared := 0
	for number := 0; err == nil && number < g.journal.Shards(); number++ {
		comparison := comparison{groups: g, shard: shardOf(k, roster, number), roster: roster, options: options}
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
		return GroupLag{}, failed("tell the lag of", k, err)
	}
	return sum, nil
}

// comparison compares heads and positions of one shard.
type comparison struct {
	groups   *Groups
	shard    checkpoint.Shard
	roster   checkpoint.Membership
	options  LagOptions
	compared func(aggregates int)

	listed map[aggregate.ID]checkpoint.Behind
	dated  int // aggregates whose first unhandled event was looked at
	lag    Lag
}

func (c *comparison) run(ctx context.Context) error {
	progress, err := c.groups.store.Progress(ctx, c.shard)
	if err != nil {
		return err
	}
	c.listed = map[aggregate.ID]checkpoint.Behind{}
	for _, b := range progress.Behind {
		c.listed[b.Aggregate] = b
	}
	for standings, err := range c.groups.store.AggregateProgress(ctx, c.shard, aggregate.ID{}, c.options.Corrupt) {
		if err != nil {
			return err
		}
		if err := c.page(ctx, standings); err != nil {
			return err
		}
		c.compared(len(standings))
	}
	return nil
}

func (c *comparison) page(ctx context.Context, standings []checkpoint.AggregateProgress) error {
	err := inParallel(readers, len(standings), func(i int) (err error) {
		s := &standings[i]
		if c.roster.ExternalPositions {
			s.Position, s.Found, err = c.groups.external.Position(ctx, subscriber.Group(c.shard.Group), s.Head.Aggregate)
		}
		if err == nil && !s.Found {
			s.Position, err = c.groups.store.Baseline(ctx, s.Head, c.roster.Start)
		}
		return err
	})
	if err != nil {
		return err
	}
	var first []place
	for _, s := range standings {
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
			c.lag.Blocked++
		}
		listed.Aggregate, listed.Head = s.Head.Aggregate, s.Head.Version
		c.options.Behind(behindOf(done, listed))
		if c.dated >= c.options.OldestOf {
			c.lag.AtLeast = true
			continue
		}
		c.dated++
		first = append(first, place{s.Head.Aggregate, done + 1})
	}
	oldest, err := c.groups.oldest(ctx, first, c.options.Corrupt)
	c.lag.older(oldest)
	return err
}

// place is that of an event.
type place struct {
	id     aggregate.ID
	number uint64
}

// oldest reports when the first of some events occurred: one read unit for each 4 KB.
func (g *Groups) oldest(ctx context.Context, events []place, corrupt func(*journal.CorruptItemError)) (time.Time, error) {
	times := make([]time.Time, len(events))
	unreadable := make([]*journal.CorruptItemError, len(events))
	err := inParallel(readers, len(events), func(i int) error {
		for record, err := range g.journal.Raw().Events(ctx, events[i].id, events[i].number, events[i].number) {
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
