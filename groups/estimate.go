package groups

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// estimateLimit is how many events, and how many aggregates of the list of those behind, an estimate looks at in each shard.
const estimateLimit = 100

// Estimate tells cheaply about how far a group is behind, as metrics and dashboards want it. In each shard it looks at the list of those
// behind and at up to a hundred events of the tail from the cursor on, up to which the group is done, and compares them with
// the positions of their aggregates, since the cursor stays some time behind (subscriber.Config.TrailingDelay).
//
// Where that is not all, the lag says AtLeast: the events are more, while the oldest one is what was found. A group that is up to date
// has 0. Not seen are events that the tail shows before the cursor, for their occurred_at is wrong or they were imported, until a sweep
// has found them; and what was acked within subscriber.Config.CommitInterval counts still. [Groups.Lag] is exact.
//
// It costs for each shard up to a hundred events at half a read unit for each 4 KB together, half a unit for each aggregate among them, and
// one and a half for each aggregate of the list, up to a hundred: about two units for a shard that has little to do, and under a
// hundred for one far behind, if events are about 1 KB and few are blocked. A tail read right after its writers may lag by a moment.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Estimate(ctx context.Context, group, topic string) (GroupLag, error) {
	k := checkpoint.Key{Group: group, Topic: topic}
	roster, err := g.roster(ctx, k)
	shards := make([]ShardLag, g.journal.Shards())
	if err == nil {
		err = inParallel(len(shards), func(number int) (err error) {
			shards[number].Shard = number
			shards[number].Lag, err = g.estimate(ctx, shardOf(k, roster, number), roster.Start)
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

func (g *Groups) estimate(ctx context.Context, shard checkpoint.Shard, start time.Time) (Lag, error) {
	progress, err := g.store.Progress(ctx, shard)
	if err != nil {
		return Lag{}, err
	}
	from := progress.Cursor
	if from.IsZero() {
		from = start
	}
	query := journal.TailQuery{AggregateType: shard.Topic, Shard: shard.Number, NumbersOnly: true, Limit: estimateLimit}
	if !from.IsZero() && from.UnixMilli() > 0 {
		query.After = journal.CursorAt(from)
	}
	tail, err := g.journal.Raw().Tail(ctx, query)
	if err != nil {
		return Lag{}, err
	}
	listed := progress.Behind[:min(len(progress.Behind), estimateLimit)]
	positions, err := g.store.Positions(ctx, shard, aggregatesOf(listed, tail.Records), false)
	if err != nil {
		return Lag{}, err
	}

	lag := Lag{AtLeast: tail.More || len(listed) < len(progress.Behind)}
	var first []place
	known := map[aggregate.ID]bool{}
	for _, b := range progress.Behind {
		known[b.Aggregate] = true
		if b.Parked != nil {
			lag.Parked++
		}
	}
	for _, b := range listed {
		position, found := positions[b.Aggregate]
		if !found {
			if position, err = g.baseline(ctx, b.Aggregate, start); err != nil {
				return Lag{}, err
			}
		}
		head := b.Head // as it was when it was listed
		for _, r := range tail.Records {
			if r.Aggregate == b.Aggregate {
				head = max(head, r.Number)
			}
		}
		if head <= position {
			continue
		}
		lag.Aggregates++
		lag.Events += head - position
		if b.Parked != nil {
			lag.ParkedEvents += head - position
		}
		first = append(first, place{b.Aggregate, position + 1})
	}
	for _, r := range tail.Records {
		if progressed := positions[r.Aggregate]; r.Number <= progressed {
			continue
		}
		lag.older(r.OccurredAt)
		if _, is := known[r.Aggregate]; !is {
			known[r.Aggregate] = false
		}
		if listed := known[r.Aggregate]; !listed {
			lag.Events++
		}
	}
	for _, listed := range known {
		if !listed {
			lag.Aggregates++
		}
	}
	oldest, err := g.oldest(ctx, first, func(*journal.CorruptItemError) {})
	lag.older(oldest)
	return lag, err
}

// aggregatesOf gives each one once.
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
