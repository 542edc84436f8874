package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// edit is what an operator has in hands to edit the rows of an aggregate.
type edit struct {
	groups *Groups
	id     aggregate.ID
	head   uint64 // the number of the aggregate's last event
	shard  checkpoint.Shard
	start  time.Time // the group's
	epoch  uint64    // of the operator; 0 while it does not hold the shard

	external bool // the group's positions are in a store of its own
}

// editAttempts is how often an edit is done again whose shard was taken away before it had ended.
const editAttempts = 5

// edit edits rows of an aggregate. Where the shard was taken away before its end, do is called
// again: it has to know what it has done, as the next owner may have built upon that, and lists the
// aggregate in any case. What verify finds wrong is told before the shard is taken from its owner,
// and verified again once the rows cannot change any more.
func (g *Groups) edit(ctx context.Context, what, group string, id aggregate.ID, verify, do func(context.Context, edit) error) error {
	k := checkpoint.Key{Group: group, Topic: id.Type}
	err := id.Validate()
	for attempt := 1; err == nil; attempt++ {
		err = g.tryEdit(ctx, k, id, verify, do)
		if err == nil {
			return nil
		}
		if errors.Is(err, checkpoint.ErrFenced) && attempt < editAttempts {
			err = ctx.Err()
		}
	}
	return failedEdit(what, group, id, err)
}

func failedEdit(what, group string, id aggregate.ID, err error) error {
	return fmt.Errorf("%s of %s for consumer group %q: %w", what, id, group, err)
}

func (g *Groups) tryEdit(ctx context.Context, k checkpoint.Key, id aggregate.ID, verify, do func(context.Context, edit) error) error {
	roster, err := g.roster(ctx, k)
	if err != nil {
		return err
	}
	number := g.journal.Shard(id)
	e := edit{groups: g, id: id, shard: shardOf(k, roster, number), start: roster.Start, external: roster.ExternalPositions}
	if e.head, err = g.version(ctx, id); err != nil {
		return err
	}
	if err := verify(ctx, e); err != nil {
		return err
	}
	return g.store.Operate(ctx, k, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
		e.shard, e.start, e.epoch, e.external = shard, r.Start, r.Epochs[number], r.ExternalPositions
		if err := verify(ctx, e); err != nil {
			return err
		}
		return do(ctx, e)
	})
}

// version is the number of the last event, also of an aggregate that was deleted.
func (g *Groups) version(ctx context.Context, id aggregate.ID) (uint64, error) {
	version, err := g.journal.Version(ctx, id)
	var deleted *journal.DeletedError
	if errors.As(err, &deleted) {
		return deleted.Version, nil
	}
	return version, err
}

// has reports whether the aggregate has that many events.
func (e edit) has(number uint64) error {
	if number > e.head {
		return fmt.Errorf("%w: event %d of %s, whose last one is %d", ErrNoSuchEvent, number, e.id, e.head)
	}
	return nil
}

// position returns where the group is. Where the shard is held, a former owner cannot move it any
// more.
func (e edit) position(ctx context.Context) (position uint64, err error) {
	var found bool
	if e.epoch > 0 {
		position, found, err = e.groups.store.Claim(ctx, e.shard.Group, e.id, e.epoch)
	} else {
		var positions map[aggregate.ID]uint64
		positions, err = e.groups.store.Positions(ctx, e.shard, []aggregate.ID{e.id}, true)
		position, found = positions[e.id]
	}
	if err != nil || found {
		return position, err
	}
	return e.groups.baseline(ctx, e.id, e.start)
}

// move puts the position anywhere. The aggregate is listed first: should this end in between,
// nothing has happened but that the next owner looks at it.
func (e edit) move(ctx context.Context, position uint64) error {
	if err := e.list(ctx); err != nil {
		return err
	}
	return e.groups.store.PutPosition(ctx, e.shard.Group, e.id, e.epoch, position)
}

// list has the next owner of the shard look at the aggregate. The entry is never deleted here, but
// written under the new epoch, or a former owner could make it again.
func (e edit) list(ctx context.Context) error {
	return e.groups.store.ListBehind(ctx, e.shard.Group, checkpoint.Revision{Epoch: e.epoch}, checkpoint.Behind{Aggregate: e.id, Head: e.head})
}
