package groups

import (
	"context"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

const (
	// estimateLimit is the maximum number of events, and of aggregates of the list, that an
	// estimate compares in each shard.
	estimateLimit = 100
	// estimateCounted is the maximum number of aggregates of the list that an estimate counts in
	// each shard.
	estimateCounted = 400
)

// Estimate returns a cheap estimate of the lag of a group, for metrics and dashboards. [Group.Lag]
// is exact. In each shard Estimate reads up to a hundred events of the tail, from the group's
// cursor on, and the list of blocked and parked aggregates. It compares these with the positions of
// their aggregates, since the cursor stays some time behind (subscriber.Timing.TrailingDelay).
//
// A group that is up to date has a lag of 0. AtLeast is set if there are more events than Estimate
// has read. Then Oldest is the oldest of the events that it has read. Oldest is the time at which
// the event was written, unless its aggregate is on the list. Blocked and Parked count up to 400
// aggregates in each shard.
//
// Some events count too early or too late:
//
//   - Events that the tail shows before the cursor, because they were imported or because their
//     time is wrong, count only when reconciliation has found them.
//   - Events that were acked within the last subscriber.Timing.CommitInterval may still count.
//   - Events that were written within the last moment may not count yet.
//
// In the packed layout it reads a hundred commits, with any number of events. For a group with a
// start it also needs some reads for each aggregate without a position, as after an import, to find
// where the group begins.
//
// For each shard it costs half a read unit for each 4 KB of up to a hundred events together, and
// half a unit for each of their aggregates. It costs one unit for about 40 aggregates of the list,
// up to 400, and one and a half for each of the first hundred. That is about two units for a shard
// with little to do. It is less than 250 units for a shard that is far behind, if events have about
// 1 KB.
//
// Errors: [ErrNoGroup], [ErrExternalPositions], [ErrCorrupt], and the errors of the journal and the
// context.
func (g *Group) Estimate(ctx context.Context) (GroupLag, error) {
	membership, err := g.membership(ctx)
	if err == nil {
		err = g.readable(membership)
	}
	shards := make([]ShardLag, g.journal.Config.Shards)
	if err == nil {
		err = inParallel(readers, len(shards), func(number int) (err error) {
			shards[number].Shard = number
			shards[number].Lag, err = g.estimate(ctx, shardOf(g.key, membership, number), membership)
			return err
		})
	}
	if err != nil {
		return GroupLag{}, g.failed("estimate the lag of", err)
	}
	var sum GroupLag
	for _, shard := range shards {
		sum.add(shard)
	}
	return sum, nil
}

func (t tables) estimate(ctx context.Context, shard checkpoint.Shard, membership checkpoint.Membership) (Lag, error) {
	start := membership.Start
	progress, err := t.store.ProgressUpTo(ctx, shard, estimateCounted)
	if err != nil {
		return Lag{}, err
	}
	from := progress.Cursor
	if from.IsZero() {
		from = start
	}
	query := storage.TailQuery{AggregateType: shard.Topic, Shard: shard.Number, NumbersOnly: true, Limit: estimateLimit}
	if !from.IsZero() && from.UnixMilli() > 0 {
		query.After = storage.CursorAt(from)
	}
	tail, err := t.journal.Raw().TailShard(ctx, query)
	if err != nil {
		return Lag{}, err
	}
	listed := progress.Behind[:min(len(progress.Behind), estimateLimit)]
	positions, err := t.positions(ctx, shard, membership, aggregatesOf(listed, tail.Records), false)
	if err != nil {
		return Lag{}, err
	}
	unplaced := aggregatesOf(listed, nil)
	if !start.IsZero() && t.journal.TailByWriteTime {
		// The tail may show events from before the start, as after an import.
		unplaced = aggregatesOf(listed, tail.Records)
	}
	for _, id := range unplaced {
		if _, found := positions[id]; !found {
			if positions[id], err = t.baseline(ctx, id, start); err != nil {
				return Lag{}, err
			}
		}
	}
	lag := lagInTail(tail.Records, progress.Behind, positions)
	lag.AtLeast = tail.More || progress.More || len(listed) < len(progress.Behind)
	held, first := lagOfListed(listed, tail.Records, positions)
	held.Parked = parked(progress.Behind)
	rest := progress.Behind[len(listed):]
	for _, b := range rest { // their positions were not read
		if b.Parked == nil {
			held.block(0, b)
		}
	}
	held.Oldest, err = t.oldest(ctx, first, func(*journal.CorruptItemError) {})
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
		lag.older(r.WrittenAt) // a read of numbers alone may not return OccurredAt
		if !seen[r.Aggregate] {
			seen[r.Aggregate] = true
			lag.Aggregates++
		}
	}
	return lag
}

// lagOfListed counts the known events of listed aggregates, and returns the first unhandled event
// of each.
func lagOfListed(listed []checkpoint.Behind, records []*journal.Record, positions map[aggregate.ID]uint64) (lag Lag, first []place) {
	heads := map[aggregate.ID]uint64{}
	for _, r := range records {
		heads[r.Aggregate] = max(heads[r.Aggregate], r.Number)
	}
	for _, b := range listed {
		position, head := positions[b.Aggregate], max(b.Head, heads[b.Aggregate])
		if head <= position {
			continue // its entry will be removed
		}
		lag.Events += head - position
		lag.Aggregates++
		if b.Parked != nil {
			lag.ParkedEvents += head - position
		} else {
			lag.block(position, b)
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

// aggregatesOf returns the aggregates of entries and records, each once.
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
