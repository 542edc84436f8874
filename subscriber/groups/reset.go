package groups

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber"
)

// Reset makes a group begin again at a place: subscriber.Beginning, Now or At. It forgets the
// group's positions and cursors, and which aggregates and events were parked or skipped. A paused
// group stays paused, and a group that was stopped (subscriber.Stop) is a paused one afterwards.
//
// The reset is one write, which raises [Group].Resets. It is done then, whatever fails later. After
// it Reset deletes the rows from before, which takes time, see [Groups.CleanUp]. Progress, if not
// nil, is called with the number of rows that each request deleted.
//
// Members may be at work. Until they see the reset, within a quarter of
// subscriber.Config.LeaseDuration, they continue where they were. During that time an event of an
// aggregate may be delivered beside those from its beginning, and an effect may still commit with a
// position from before the reset. Where that matters, for instance because a read model is cleared,
// pause the group and wait until it is idle first.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's; with [ErrLeftovers] the
// group was reset.
func (g *Groups) Reset(ctx context.Context, group, topic string, to subscriber.Start, progress func(rows int)) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	start := g.store.Start(to.Time(g.journal.Config().Now()))
	_, err := g.store.ModifyMembership(ctx, k, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Reset(start), nil })
	if err != nil {
		return failed("reset", k, err)
	}
	if err := g.CleanUp(ctx, group, topic, progress); err != nil {
		return failed("reset", k, fmt.Errorf("%w: %w", ErrLeftovers, err))
	}
	return nil
}

// CleanUp deletes the rows that a group wrote before it was reset. It is for after a [Groups.Reset]
// that ended early, and may be repeated. It costs one read unit for some 40 rows, at least for each
// shard and earlier reset, and one write unit for each row: one for each aggregate that the group
// had a position on, and one or two for each record of a skipped event. A few shards are cleaned up
// side by side, with 25 rows under way in each.
//
// What members write before they learn of a reset may come after it, and stays until the next
// CleanUp.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) CleanUp(ctx context.Context, group, topic string, progress func(rows int)) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	roster, err := g.roster(ctx, k)
	if err == nil {
		err = g.removeRows(ctx, k, roster.Resets, progress)
	}
	if err != nil {
		return failed("clean up after", k, err)
	}
	return nil
}

// removers is how many shards are removed side by side: so few that live traffic does not starve.
const removers = 4

// removeRows deletes the rows from before a count of resets was reached.
func (g *Groups) removeRows(ctx context.Context, k checkpoint.Key, before uint64, progress func(rows int)) error {
	var mu sync.Mutex
	report := func(rows int) {
		mu.Lock()
		defer mu.Unlock()
		if progress != nil {
			progress(rows)
		}
	}
	for resets := range before {
		err := inParallel(removers, g.journal.Shards(), func(number int) error {
			return g.store.RemoveShard(ctx, shardOf(k, checkpoint.Membership{Resets: resets}, number), report)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
