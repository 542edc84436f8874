package groups

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber"
)

// Reset makes a group begin again at a start: subscriber.Beginning, Now or At. It removes the
// group's positions and cursors, and the records of parked aggregates and skipped events. A paused
// group stays paused. A group that was stopped (subscriber.Stop) becomes a paused group.
//
// The reset is one write, which raises [Group].Resets. Then Reset deletes the rows from before,
// which takes time, see [Groups.CleanUp]. It calls progress, if not nil, with the number of rows
// that each request has deleted.
//
// The group may have members. Until they see the reset, within a quarter of
// subscriber.Config.LeaseDuration, they continue where they were. During that time later events of
// an aggregate may be delivered between the events from the start. An effect may still commit with
// a position from before the reset. To prevent this, for example when you clear a read
// model, pause the group first, and wait until it is idle.
//
// Errors: [ErrNoGroup], [ErrCorrupt], and the errors of the journal and the context. With
// [ErrLeftovers] the group was reset.
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

// CleanUp deletes the rows that a group wrote before it was reset. Call it after a [Groups.Reset]
// that has returned [ErrLeftovers]. It can be repeated. Rows that members write before they see a
// reset may be left after it, until the next CleanUp.
//
// It costs one read unit for about 40 rows, at least one for each shard and each earlier reset. It
// costs one write unit for each position, which is one for each aggregate, and one or two for each
// record of a skipped event. It deletes the rows of four shards in parallel, 25 rows at a time in
// each.
//
// Errors: [ErrNoGroup], [ErrCorrupt], and the errors of the journal and the context.
func (g *Groups) CleanUp(ctx context.Context, group, topic string, progress func(rows int)) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	membership, err := g.membership(ctx, k)
	if err == nil {
		err = g.removeRows(ctx, k, membership.Resets, progress)
	}
	if err != nil {
		return failed("clean up after", k, err)
	}
	return nil
}

// removers is the number of shards whose rows are deleted in parallel. It is small, to leave
// capacity for other requests.
const removers = 4

// removeRows deletes the rows that were written before a reset, which is given by its number.
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
