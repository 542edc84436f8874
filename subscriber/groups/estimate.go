package groups

import (
	"context"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

const (
	// estimateLimit is how many events, and how many aggregates of the list of those behind, an
	// estimate looks at in each shard.
	estimateLimit = 100
	// estimateCounted is up to how many aggregates of the list it counts.
	estimateCounted = 400
)

// Estimate estimates cheaply how far a group is behind, as metrics and dashboards want it. In
// each shard it looks at the list of those behind and at up to a hundred events of the tail from
// the cursor on, up to which the group is done, and compares them with the positions of their
// aggregates, since the cursor stays some time behind (subscriber.Config.TrailingDelay).
//
// If there are more, AtLeast is set: there are more events than Events, and Oldest is that of the
// events that were found. It counts up to 400 parked and blocked aggregates in each shard. Oldest
// is the time at which the event was written, unless its aggregate is on the list. A group that is
// up to date has 0. Events that the tail shows before the cursor, as their occurred_at is wrong or
// they were imported, do not count until reconciliation has found them. Events that were acked
// within the last subscriber.Config.CommitInterval may still count. [Groups.Lag] is exact.
//
// In the packed layout, it looks at a hundred commits, whatever they have of events. Of a group
// with a start, it looks for where the group begins with each aggregate among them that has no
// position, as after an import: some reads for each.
//
// It costs for each shard up to a hundred events at half a read unit for each 4 KB together, half a
// unit for each aggregate among them, one and a half for each aggregate of the list, up to a
// hundred, and one for some 40 aggregates of the list, up to 400: about two units for a shard that
// has little to do, and under 250 for one far behind, if events are about 1 KB, however many are
// blocked. A tail read right after its writers may lag by a moment.
//
// Errors: [ErrNoGroup], [ErrExternalPositions], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Estimate(ctx context.Context, group, topic string) (GroupLag, error) {
	k := checkpoint.Key{Group: group, Topic: topic}
	roster, err := g.roster(ctx, k)
	if err == nil {
		err = g.readable(roster)
	}
	shards := make([]ShardLag, g.journal.Shards())
	if err == nil {
		err = inParallel(readers, len(shards), func(number int) (err error) {
			shards[number].Shard = number
			shards[number].Lag, err = g.estimate(ctx, shardOf(k, roster, number), roster)
			return err
		})
	}
	if err != nil {
		return GroupLag{}, failed("estimate the lag of", k, err)
	}
	var sum GroupLag
	for _, shard := range shards {
		sum.add(shard)
	}
	return sum, nil
}

func (g *Groups) estimate(ctx context.Context, shard checkpoint.Shard, roster checkpoint.Membership) (Lag, error) {
	start := roster.Start
	progress, err := g.store.ProgressUpTo(ctx, shard, estimateCounted)
	if err != nil {
		return Lag{}, err
	}
	from := progress.Cursor
	if from.IsZero() {
		from = start
	}
	query := eventlog.TailQuery{AggregateType: shard.Topic, Shard: shard.Number, NumbersOnly: true, Limit: estimateLimit}
	if !from.IsZero() && from.UnixMilli() > 0 {
		query.After = eventlog.CursorAt(from)
	}
	tail, err := g.journal.Raw().TailShard(ctx, query)
	if err != nil {
		return Lag{}, err
	}
	listed := progress.Behind[:min(len(progress.Behind), estimateLimit)]
	positions, err := g.positions(ctx, shard, roster, aggregatesOf(listed, tail.Records), false)
	if err != nil {
		return Lag{}, err
	}
	unplaced := aggregatesOf(listed, nil)
	if !start.IsZero() && g.journal.TailByWriteTime() {
		unplaced = aggregatesOf(listed, tail.Records) // the tail may show events from before the start, as after an import
	}
	for _, id := range unplaced {
		if _, found := positions[id]; !found {
			if positions[id], err = g.baseline(ctx, id, start); err != nil {
				return Lag{}, err
			}
		}
	}
	lag := lagInTail(tail.Records, progress.Behind, positions)
	lag.AtLeast = tail.More || progress.More || len(listed) < len(progress.Behind)
	held, first := lagOfListed(listed, tail.Records, positions)
	held.Parked = parked(progress.Behind)
	rest := progress.Behind[len(listed):]
	held.Blocked += len(rest) - parked(rest)
	held.Oldest, err = g.oldest(ctx, first, func(*journal.CorruptItemError) {})
	lag.add(held)
	return lag, err
}

// lagInTail counts the events of the tail that are not handled, except those of aggregates that
// are listed.
func lagInTail(records []*journal.Record, listed []checkpoint.Behind, positions map[aggregate.ID]uint64) Lag {
	var lag Lag
	seen := map[aggregate.ID]bool{}
	for _, b := range listed {
		seen[b.Aggregate] = true
	}
	isListed := maps.Clone(seen)
	for _, r := range records {
		if isListed[r.Aggregate] || r.Number <= positions[r.Aggregate] {
			continue
		}
		lag.Events++
		lag.older(r.WrittenAt) // a read of numbers alone may not return when it occurred
		if !seen[r.Aggregate] {
			seen[r.Aggregate] = true
			lag.Aggregates++
		}
	}
	return lag
}

// lagOfListed counts the events of aggregates that are listed, as far as it is known how many they
// have, and returns the first of each.
func lagOfListed(listed []checkpoint.Behind, records []*journal.Record, positions map[aggregate.ID]uint64) (lag Lag, first []place) {
	heads := map[aggregate.ID]uint64{}
	for _, r := range records {
		heads[r.Aggregate] = max(heads[r.Aggregate], r.Number)
	}
	for _, b := range listed {
		position, head := positions[b.Aggregate], max(b.Head, heads[b.Aggregate])
		if head <= position {
			continue // it is still to be taken off
		}
		lag.Events += head - position
		lag.Aggregates++
		if b.Parked != nil {
			lag.ParkedEvents += head - position
		} else {
			lag.Blocked++
		}
		first = append(first, place{b.Aggregate, position + 1})
	}
	return lag, first
}

func parked(listed []checkpoint.Behind) (n int) {
	for _, b := range listed {
		if b.Parked != nil {
			n++
		}
	}
	return n
}

// aggregatesOf returns each one once.
func aggregatesOf(listed []checkpoint.Behind, records []*journal.Record) []aggregate.ID {
	ids := idsOf(listed)
	seen := map[aggregate.ID]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	for _, r := range records {
		if !seen[r.Aggregate] {
			seen[r.Aggregate] = true
			ids = append(ids, r.Aggregate)
		}
	}
	return slices.Clip(ids)
}
