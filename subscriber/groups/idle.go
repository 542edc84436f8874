package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
)

// WaitIdle waits until no member owns a shard, and no transaction of a handler can commit any more.
// Then no event is being handled, and no projection has an effect. Pause the group first, and wait
// before a [Group.Reset]: WaitIdle does not wait for handlers that began before a reset. A member
// that crashed may still store positions of acked events.
//
// It reads the group at growing intervals, from 50 ms to one second, and each read costs one unit.
// Members fence the transactions of their handlers by themselves, so that these can no longer
// commit. Members that have crashed, or cannot reach the table, do not. Then WaitIdle takes each of
// their shards, as an edit does, and claims the positions that such a transaction may move. That
// costs:
//
//   - two write units for each shard;
//   - one read unit for about 40 positions of the shard;
//   - one write unit for each aggregate that was handled in the shard since that member took it;
//   - for a projection.Rows also a read of all heads of the shard, and of the row of each
//     aggregate;
//   - if the member was the first owner of the shard in the group, also a read of all heads of the
//     shard, and one read and one write unit for each aggregate without a position.
//
// A member that crashed owns its shards until another member has missed its heartbeats for the time
// of a lease. If no other member runs, WaitIdle waits until ctx ends. Then the error lists the
// members and their shards.
//
// WaitIdle relies on leases. A member whose process and clock stood still for longer than its lease
// may later begin a transaction for an aggregate that it had not handled before.
//
// For a group with external positions WaitIdle waits only for the members. Transactions that a
// crashed member has sent to that store may still commit, until the store has ended them.
//
// Errors: [*ActiveError] with the error of the context, [ErrNoGroup], [ErrCorrupt],
// subscriber.ErrFenced, and the errors of the journal.
func (g *Group) WaitIdle(ctx context.Context) error {
	between := retry.Pauses(50*time.Millisecond, time.Second, 0)
	var active *ActiveError
	for {
		membership, err := g.membership(ctx)
		if err != nil && ctx.Err() != nil && active != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), active)
		}
		if err != nil {
			return g.failed("wait for", err)
		}
		if _, gone := membership.LeaveVisitors(g.journal.Config.Now()); gone { // killed bursts
			_, err := g.store.ModifyMembership(ctx, g.key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
				next, _ := r.LeaveVisitors(g.journal.Config.Now())
				return next, nil
			})
			if err != nil {
				return g.failed("remove bursts that have ended from", err)
			}
			continue
		}
		if active = busyOf(membership); active == nil {
			fenced, err := g.fence(ctx, membership)
			if err != nil {
				return g.failed("fence former members of", err)
			}
			if !fenced {
				return nil
			}
			continue // an operator may have resumed the group meanwhile
		}
		if !retry.Sleep(ctx, between.NextBackOff()) {
			return g.failed("wait for", fmt.Errorf("%w: %w", ctx.Err(), active))
		}
	}
}

// busyOf returns an ActiveError if members own shards, or may still be handling events of shards
// that were taken from them.
func busyOf(r checkpoint.Membership) *ActiveError {
	active := activeOf(r)
	if active == nil {
		return nil
	}
	for _, t := range r.Unfenced {
		if t.Member != 0 {
			active.Shards = append(active.Shards, t.Shard)
		}
	}
	if len(active.Shards) == 0 {
		return nil
	}
	return active
}

// fence claims the positions that transactions of former members may move. It returns false if
// there is nothing to fence.
func (g *Group) fence(ctx context.Context, membership checkpoint.Membership) (fenced bool, err error) {
	if membership.ExternalPositions {
		return false, nil
	}
	for number := range membership.Owners {
		if membership.UnfencedSince(number) == 0 {
			continue
		}
		fenced = true
		err := again(ctx, func() error {
			return g.store.Fence(ctx, g.key, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
				return g.fenceShard(ctx, shard, r)
			})
		})
		if err != nil {
			return fenced, err
		}
	}
	return fenced, nil
}

func (t tables) fenceShard(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
	since, epoch := r.UnfencedSince(shard.Number), r.Epochs[shard.Number]
	if since == 0 {
		return nil // another operator has fenced it
	}
	for ids, err := range t.store.In(r.Rows).ClaimedPositions(ctx, shard, since, epoch-1) {
		if err == nil {
			err = claim(ctx, t.store.In(r.Rows), shard, ids, epoch)
		}
		if err != nil {
			return err
		}
	}
	if since > r.Base+1 || !r.Start.IsZero() || r.Rows != nil && r.Resets > 0 {
		return nil // its owner has claimed each position before it moved
	}
	// The first owner of a shard claims no positions, since there are none yet. It may have sent
	// transactions for aggregates without a position.
	for ids, err := range t.store.In(r.Rows).Unclaimed(ctx, shard) {
		if err == nil {
			err = claim(ctx, t.store.In(r.Rows), shard, ids, epoch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func claim(ctx context.Context, store *checkpoint.Store, shard checkpoint.Shard, ids []aggregate.ID, epoch uint64) error {
	return inParallel(writers, len(ids), func(i int) error {
		// A transaction may hold the row; it commits or fails before the claim succeeds.
		return patiently(ctx, func() error {
			_, _, err := store.Claim(ctx, shard.Group, ids[i], epoch)
			return err
		})
	})
}

// again repeats an operation if it loses its shard, and if requests fail that may succeed later.
func again(ctx context.Context, operate func() error) error {
	between := patience()
	for attempt := 1; ; attempt++ {
		err := operate()
		more := errors.Is(err, checkpoint.ErrFenced) || err != nil && passes(err)
		if !more || attempt == editAttempts || !retry.Sleep(ctx, between.NextBackOff()) {
			return err
		}
	}
}
