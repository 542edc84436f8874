package groups

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Reconcile has the group look for events that its members have missed: as soon as members have
// taken up their shards again, they compare all aggregates with the group's positions, and handle
// what is missing.
//
// In the classic layout they do so by themselves every subscriber.Config.ReconcileInterval, by default
// one hour. Call Reconcile to have it earlier, for instance after an import, whose events may be
// dated before the place that the members have reached. In the packed layout members compare by
// themselves only what was written lately, and all aggregates once a week.
//
// It takes each logical shard from its owner for a moment, as an edit does: events of the shard
// that were acked and not stored yet (subscriber.Config.CommitInterval) are delivered again. It
// returns when all shards are marked. A member begins within a minute and a half after it has
// caught up with the shard's tail, and compares one shard after the other. The mark stays until the
// shard was compared, also while the group is paused. [Groups.Reconciling] returns the shards that
// are still marked, and [Groups.WaitReconciled] waits until none is.
//
// Members that never compare (a negative ReconcileInterval, the default of a group with positions in a
// store of its own) ignore it.
//
// It costs three write units for each shard, and then what the comparison costs: half a read unit
// for each 4 KB of the positions, some 40 to the unit, and, in the classic layout, of the snapshot
// table's part of the topic, states included. In the packed layout it is instead half a unit for
// each 4 KB of the last item of each aggregate.
//
// Errors: [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced, those of the journal, the context's.
// After an error some shards may be marked; call it again.
func (g *Groups) Reconcile(ctx context.Context, group, topic string) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	_, err := g.roster(ctx, k)
	for number := 0; err == nil && number < g.journal.Shards(); number++ {
		err = again(ctx, func() error {
			return g.store.Operate(ctx, k, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
				return g.store.RequestReconciliation(ctx, shard, r.Epochs[number])
			})
		})
	}
	if err != nil {
		return failed("reconcile", k, err)
	}
	return nil
}

// Reconciling returns the shards that members are still to compare after a [Groups.Reconcile], or
// where events that the comparison found are still to be handled. An aggregate that is parked, or
// blocked for longer than subscriber.Config.BehindAfter, does not count: [Groups.Behind] lists it.
// It costs a read unit for each shard.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Reconciling(ctx context.Context, group, topic string) ([]int, error) {
	k := checkpoint.Key{Group: group, Topic: topic}
	all := make([]int, g.journal.Shards())
	for number := range all {
		all[number] = number
	}
	left, err := g.reconciling(ctx, k, all)
	if err != nil {
		return nil, failed("read what is left to reconcile of", k, err)
	}
	return left, nil
}

func (g *Groups) reconciling(ctx context.Context, k checkpoint.Key, shards []int) ([]int, error) {
	roster, err := g.roster(ctx, k)
	if err != nil {
		return nil, err
	}
	return g.store.ReconciliationRequested(ctx, checkpoint.Group{Name: k.Group, Resets: roster.Resets}, k.Topic, shards)
}

// WaitReconciled waits until members have compared all shards that [Groups.Reconcile] has marked,
// and have handled what they found, or have listed it as behind. It calls progress, if not nil,
// with the number of shards that are left, after each look. That takes as long as a member needs to
// begin, up to two minutes, and the comparison. It does not end by itself if the group is paused,
// has no members, or has members that never compare: it ends with ctx then, and the shards stay
// marked.
//
// It looks every 100 ms at first and every 5 seconds later, at a read unit for the group and for
// each shard that is left.
//
// Errors: those of Reconciling. With the context's the text says how many shards are left.
func (g *Groups) WaitReconciled(ctx context.Context, group, topic string, progress func(left int)) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0),
	)
	left, err := g.Reconciling(ctx, group, topic)
	for err == nil && len(left) > 0 {
		if progress != nil {
			progress(len(left))
		}
		if !sleep(ctx, between.NextBackOff()) {
			return failed("wait for", k, fmt.Errorf("%w: %d shards are left to compare", ctx.Err(), len(left)))
		}
		var now []int
		if now, err = g.reconciling(ctx, k, left); err != nil {
			return failed("wait for", k, err)
		}
		left = now
	}
	if err == nil && progress != nil {
		progress(0)
	}
	return err
}
