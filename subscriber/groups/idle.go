package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// WaitIdle waits until no member owns a shard and no transaction of a handler can commit any more:
// nothing is out for handling then, and no projection has an effect. Pause the group first. A
// member that crashed may still store, late, what handlers without such a transaction have acked.
//
// It reads the group every 50 ms at first and every second later, one read unit each. Members shut
// out by themselves what their handlers have sent. Those that crashed do not, nor do those that
// could not reach the table: WaitIdle then takes each of their shards as an edit does, and claims
// the positions that such a transaction may move. That costs two write units for each shard; one
// read unit for some 40 positions of the shard; and one write unit for each aggregate that was
// handled in the shard since that member took it, at least those that it had handled itself. If the
// shard never had an owner before it in the group, it also costs a read of all heads of the shard
// and one read and one write unit for each aggregate that has no position yet.
//
// A member that crashed owns its shards until another one has missed it for the time of a lease;
// where no other runs, WaitIdle does not return before ctx ends. The error says who holds what
// then.
//
// It relies on leases as everything else does: a member whose process stood still for longer than
// its lease, and whose clock stood still with it, may begin a transaction afterwards on an
// aggregate that it had not handled before. What was out before a [Groups.Reset] is not waited for,
// so wait before the reset.
//
// If the group has positions in a store of its own, WaitIdle waits for the members alone. What a
// member that crashed has sent to that store may still commit, until the store has ended its
// transaction.
//
// Errors: [*ActiveError] with the context's, [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced,
// those of the journal.
func (g *Groups) WaitIdle(ctx context.Context, group, topic string) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0),
	)
	var active *ActiveError
	for {
		roster, err := g.roster(ctx, k)
		if err != nil && ctx.Err() != nil && active != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), active)
		}
		if err != nil {
			return failed("wait for", k, err)
		}
		if active = busyOf(roster); active == nil {
			fenced, err := g.fence(ctx, k, roster)
			if err != nil {
				return failed("shut out former members of", k, err)
			}
			if !fenced {
				return nil
			}
			continue // somebody may have resumed the group meanwhile
		}
		if !sleep(ctx, between.NextBackOff()) {
			return failed("wait for", k, fmt.Errorf("%w: %w", ctx.Err(), active))
		}
	}
}

// busyOf returns an ActiveError if members own shards, or have not come to rest with shards that
// were taken from them.
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
func (g *Groups) fence(ctx context.Context, k checkpoint.Key, roster checkpoint.Membership) (fenced bool, err error) {
	if roster.ExternalPositions {
		return false, nil
	}
	for number := range roster.Owners {
		if roster.UnfencedSince(number) == 0 {
			continue
		}
		fenced = true
		err := again(ctx, func() error {
			return g.store.Fence(ctx, k, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
				return g.fenceShard(ctx, shard, r)
			})
		})
		if err != nil {
			return fenced, err
		}
	}
	return fenced, nil
}

func (g *Groups) fenceShard(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
	since, epoch := r.UnfencedSince(shard.Number), r.Epochs[shard.Number]
	if since == 0 {
		return nil // somebody else has fenced it
	}
	for ids, err := range g.store.ClaimedPositions(ctx, shard, since, epoch-1) {
		if err == nil {
			err = g.claim(ctx, shard, ids, epoch)
		}
		if err != nil {
			return err
		}
	}
	if since > r.Base+1 || !r.Start.IsZero() {
		return nil
	}
	// The first owner of a shard claims no positions, as there are none.
	for ids, err := range g.store.Unclaimed(ctx, shard) {
		if err == nil {
			err = g.claim(ctx, shard, ids, epoch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Groups) claim(ctx context.Context, shard checkpoint.Shard, ids []aggregate.ID, epoch uint64) error {
	return inParallel(writers, len(ids), func(i int) error {
		return patiently(ctx, func() error { // also while a transaction holds the row, which then commits or does not
			_, _, err := g.store.Claim(ctx, shard.Group, ids[i], epoch)
			return err
		})
	})
}

// again repeats what an operator does where the shard was taken away meanwhile, and where requests
// fail that may succeed later.
func again(ctx context.Context, operate func() error) error {
	between := patience()
	for attempt := 1; ; attempt++ {
		err := operate()
		more := errors.Is(err, checkpoint.ErrFenced) || err != nil && passes(err)
		if !more || attempt == editAttempts || !sleep(ctx, between.NextBackOff()) {
			return err
		}
	}
}
