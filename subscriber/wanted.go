package subscriber

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
)

// shardOf returns the key of a shard.
func (s *subscription) shardOf(r checkpoint.Membership, number int) checkpoint.Shard {
	return checkpoint.Shard{Group: checkpoint.Group{Name: s.config.ConsumerGroup, Resets: r.Resets}, Topic: s.topic, Number: number}
}

// shardsOf adds to a visit the hints of aggregates that seem to have unhandled events, and returns
// their shards. A hint costs half a read unit for the position, and the read of the version if the
// position is before the hint.
func (s *subscription) shardsOf(ctx context.Context, seen checkpoint.Membership, v *visit, hints map[aggregate.ID]uint64) (shards []int, err error) {
	ids := map[int][]aggregate.ID{}
	for id := range hints {
		n := s.journal.Shard(id)
		ids[n] = append(ids[n], id)
	}
	for n, some := range ids {
		unhandled, err := s.unhandled(ctx, s.shardOf(seen, n), seen.Exists(), some, hints)
		if err != nil {
			return nil, err
		}
		if len(unhandled) == 0 {
			continue
		}
		shards, v.hints[n] = append(shards, n), map[aggregate.ID]uint64{}
		for _, id := range unhandled {
			v.hints[n][id] = hints[id]
		}
	}
	return shards, nil
}

// unhandled returns those aggregates of a shard that seem to have events after the position of the
// group, which may not exist yet.
func (s *subscription) unhandled(
	ctx context.Context, shard checkpoint.Shard, exists bool, ids []aggregate.ID, hints map[aggregate.ID]uint64,
) (unhandled []aggregate.ID, err error) {
	positions := map[aggregate.ID]uint64{}
	if _, own := s.config.Positions.(*tablePositions); (own || rowsOf(s.config.Positions) != nil) && exists {
		if positions, err = s.checkpoint.Positions(ctx, shard, ids, false); err != nil {
			return nil, err
		}
	}
	found := make([]bool, len(ids))
	var reads []func() error
	for i, id := range ids {
		reads = append(reads, func() error {
			if positions[id] >= hints[id] {
				return nil
			}
			version, err := s.headNow(ctx, id)
			// The worker of an aggregate that cannot be read reports that.
			found[i] = err != nil || version > positions[id]
			return err
		})
	}
	if s.inParallel(reads); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for i, id := range ids {
		if found[i] {
			unhandled = append(unhandled, id)
		}
	}
	return unhandled, nil
}

// shardsToSweep returns the shards that may have something to do, also those on which other
// visitors work, which sweep them then. It costs half a read unit for the row of the cursor of each
// shard, and half a one for each partition of its tail.
func (s *subscription) shardsToSweep(ctx context.Context, seen checkpoint.Membership) (shards []int, err error) {
	all := make([]int, s.config.Journal.Shards())
	for n := range all {
		all[n] = n
	}
	if !seen.Exists() {
		return all, nil
	}
	free, handed := s.member.Free(seen, all), s.member.Handed(seen)
	cursors, err := s.checkpoint.Cursors(ctx, s.shardOf(seen, 0).Group, s.topic, free)
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(free))
	var reads []func() error
	for i, n := range free {
		c := cursors[n]
		if slices.Contains(handed, n) || c.Epoch != seen.Epochs[n] || s.isDue(c.Due) || s.mustReconcile(c.Reconciled) {
			found[i] = true
			continue
		}
		if !c.Due.Equal(checkpoint.Never) {
			s.burst.leave(0, c.Due)
		}
		reads = append(reads, func() error {
			page, err := s.raw.TailShard(ctx, storage.TailQuery{
				AggregateType: s.topic, Shard: n, After: storage.CursorAt(c.Cursor), Until: s.now().Add(s.config.Timing.TrailingDelay), NumbersOnly: true, Limit: 1,
			})
			found[i] = len(page.Records)+len(page.Corrupt) > 0
			return err
		})
	}
	err = worst(s.inParallel(reads))
	for i, n := range free {
		if found[i] {
			shards = append(shards, n)
		}
	}
	return append(shards, s.member.Visited(seen)...), err
}

// isDue reports whether something in a shard must be tried now. A time that is further ahead than
// any pause is from a wrong clock.
func (s *subscription) isDue(at time.Time) bool {
	ahead := at.Sub(s.now())
	longest := max(s.config.MaxNackResendSleep, s.config.Failures.backoff.MaxPause) + storage.ClocksDiffer
	return ahead <= 0 || ahead > longest && !at.Equal(checkpoint.Never)
}

// mustReconcile reports whether a sweep must reconcile a shard.
func (s *subscription) mustReconcile(last time.Time) bool {
	since := s.now().Sub(last)
	return s.config.Timing.ReconcileInterval > 0 && (since >= s.config.Timing.ReconcileInterval || since < 0)
}
