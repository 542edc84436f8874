package groups

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Reconcile requests a reconciliation: members compare all aggregates with the group's positions,
// and handle events that they have missed. Call it after an import, since imported events may be
// dated before the group's cursor.
//
// In the classic layout members do the same every subscriber.Timing.ReconcileInterval, by default
// one hour. In the packed layout their hourly reconciliation compares only recent writes. There
// they compare all aggregates once a week.
//
// Reconcile marks each shard and returns. To mark a shard, it takes the shard from its owner for a
// moment, as an edit does. So events of the shard that were acked but whose positions were not
// stored yet (subscriber.Timing.CommitInterval) are delivered again. A member begins within a
// minute and a half after it has caught up with the shard's tail. It compares one shard after the
// other. The mark stays until the shard was compared, also while the group is paused.
// [Group.Reconciling] returns the shards that are still marked, and [Group.WaitReconciled] waits
// for them.
//
// Members with a negative ReconcileInterval, the default for external positions, never reconcile.
//
// It costs three write units for each shard. The reconciliation costs half a read unit for about 40
// positions. In the classic layout it also costs half a read unit for each 4 KB of the topic's rows
// in the snapshot table, including states. In the packed layout it also costs half a read unit for
// each 4 KB of each aggregate's last item.
//
// Errors: [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced, and the errors of the journal and the
// context. After an error some shards may be marked; call it again.
func (g *Group) Reconcile(ctx context.Context) error {
	_, err := g.membership(ctx)
	for number := 0; err == nil && number < g.journal.Config.Shards; number++ {
		err = again(ctx, func() error {
			return g.store.Operate(ctx, g.key, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
				return g.store.RequestReconciliation(ctx, shard, r.Epochs[number])
			})
		})
	}
	if err != nil {
		return g.failed("reconcile", err)
	}
	return nil
}

// Reconciling returns the shards that [Group.Reconcile] has marked and for which the
// reconciliation has not ended. It ends when the events that it has found are handled, or when
// their aggregates are listed by [Group.Behind], as parked or blocked aggregates are. It costs one
// read unit for each shard.
//
// Errors: [ErrNoGroup], [ErrCorrupt], and the errors of the journal and the context.
func (g *Group) Reconciling(ctx context.Context) ([]int, error) {
	all := make([]int, g.journal.Config.Shards)
	for number := range all {
		all[number] = number
	}
	left, err := g.reconciling(ctx, all)
	if err != nil {
		return nil, g.failed("read the shards that are left to reconcile for", err)
	}
	return left, nil
}

func (g *Group) reconciling(ctx context.Context, shards []int) ([]int, error) {
	membership, err := g.membership(ctx)
	if err != nil {
		return nil, err
	}
	return g.store.ReconciliationRequested(ctx, checkpoint.Group{Name: g.key.Group, Resets: membership.Resets}, g.key.Topic, shards)
}

// WaitReconciled waits until [Group.Reconciling] returns no shards. It calls progress, if not nil,
// with the number of shards that are left, after each poll. Members need up to two minutes to
// begin, and then the time of the comparison.
//
// It waits until ctx ends if the group is paused, if it has no members, or if its members never
// reconcile. The shards then stay marked.
//
// It polls at growing intervals, from 100 ms to 5 seconds. Each poll costs one read unit for the
// group and one for each shard that is left.
//
// Errors: those of Reconciling. If ctx ends, the text contains the number of shards that are left.
func (g *Group) WaitReconciled(ctx context.Context, progress func(left int)) error {
	between := retry.Pauses(100*time.Millisecond, 5*time.Second, 0)
	left, err := g.Reconciling(ctx)
	for err == nil && len(left) > 0 {
		if progress != nil {
			progress(len(left))
		}
		if !retry.Sleep(ctx, between.NextBackOff()) {
			return g.failed("wait for", fmt.Errorf("%w: %d shards are left to compare", ctx.Err(), len(left)))
		}
		var now []int
		if now, err = g.reconciling(ctx, left); err != nil {
			return g.failed("wait for", err)
		}
		left = now
	}
	if err == nil && progress != nil {
		progress(0)
	}
	return err
}
