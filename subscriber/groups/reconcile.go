package groups

import (
	"context"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Reconcile has the group look for events that its members have missed: as soon as members have
// taken up their shards again, they compare the heads of all aggregates with the group's positions,
// and handle what is missing. They do so by themselves every subscriber.Config.SweepInterval, by
// default one hour. Call Reconcile to have it earlier, for instance after an import, whose events
// may be dated before the place that the members have reached.
//
// It takes each logical shard from its owner for a moment, as an edit does: events of the shard
// that were acked and not stored yet (subscriber.Config.CommitInterval) are delivered again. It
// returns when all shards are marked. A member begins within a minute and a half after it has
// caught up with the shard's tail, and compares one shard after the other. The mark stays until the
// shard was compared, also while the group is paused.
//
// Members that never compare (a negative SweepInterval, the default of a group with positions in a
// store of its own) ignore it.
//
// It costs three write units for each shard, and then what the comparison costs: half a read unit
// for each 4 KB of the snapshot table's part of the topic, states included, and of the positions,
// some 40 to the unit.
//
// Errors: [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced, those of the journal, the context's.
// After an error some shards may be marked; call it again.
func (g *Groups) Reconcile(ctx context.Context, group, topic string) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	_, err := g.roster(ctx, k)
	for number := 0; err == nil && number < g.journal.Shards(); number++ {
		err = again(ctx, func() error {
			return g.store.Operate(ctx, k, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Roster) error {
				return g.store.RequestSweep(ctx, shard, r.Epochs[number])
			})
		})
	}
	if err != nil {
		return failed("reconcile", k, err)
	}
	return nil
}
