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

// edit holds the data with which an operator edits the rows of an aggregate.
type edit struct {
	group *Group
	id    aggregate.ID
	head  uint64 // number of the aggregate's last event
	shard checkpoint.Shard
	start time.Time // start of the group
	epoch uint64    // epoch of the operator; 0 while it does not hold the shard

	external bool              // the group has external positions
	rows     *checkpoint.Rows  // of its positions, or nil
	guarded  bool              // a replay needs a confirmation
	store    *checkpoint.Store // of its positions
}

// editAttempts is the maximum number of attempts at an edit that loses its shard before its end.
const editAttempts = 5

// edit edits rows of an aggregate. It calls verify before it takes the shard from its owner, and
// again when it holds the shard and the rows cannot change any more. If it loses the shard before
// the end of do, it calls do again. Since the next owner may have continued from the changes of the
// first call, do must not repeat these. In every call do must list the aggregate.
func (g *Groups) edit(ctx context.Context, what, group string, id aggregate.ID, verify, do func(context.Context, edit) error) error {
	one := g.Of(group, id.Type)
	err := id.Validate()
	for attempt := 1; err == nil; attempt++ {
		err = one.tryEdit(ctx, id, verify, do)
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

func (g *Group) tryEdit(ctx context.Context, id aggregate.ID, verify, do func(context.Context, edit) error) error {
	membership, err := g.membership(ctx)
	if err != nil {
		return err
	}
	number := g.journal.Shard(id)
	e := edit{group: g, id: id, shard: shardOf(g.key, membership, number), start: membership.Start}
	e.placed(membership)
	if e.head, err = g.version(ctx, id); err != nil {
		return err
	}
	if err := verify(ctx, e); err != nil {
		return err
	}
	return g.store.Operate(ctx, g.key, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
		e.shard, e.start, e.epoch = shard, r.Start, r.Epochs[number]
		e.placed(r)
		if err := verify(ctx, e); err != nil {
			return err
		}
		return do(ctx, e)
	})
}

// placed records where the positions of the group are.
func (e *edit) placed(r checkpoint.Membership) {
	e.external, e.rows, e.store = r.ExternalPositions, r.Rows, e.group.store.In(r.Rows)
	e.guarded = r.NoReplay && !e.group.replays
}

// version returns the number of the last event, also for an aggregate that was deleted.
func (t tables) version(ctx context.Context, id aggregate.ID) (uint64, error) {
	version, err := t.journal.Version(ctx, id)
	var deleted *journal.DeletedError
	if errors.As(err, &deleted) {
		return deleted.Version, nil
	}
	return version, err
}

// has returns an error if the aggregate does not have an event with this number.
func (e edit) has(number uint64) error {
	if number > e.head {
		return fmt.Errorf("%w: event %d of %s, whose last event is %d", ErrNoSuchEvent, number, e.id, e.head)
	}
	return nil
}

// position returns the position of the group, and whether it is stored. If the operator holds the
// shard, a former owner cannot move the position any more.
func (e edit) position(ctx context.Context) (position uint64, found bool, err error) {
	if e.epoch > 0 {
		position, found, err = e.store.Claim(ctx, e.shard.Group, e.id, e.epoch)
	} else {
		var positions map[aggregate.ID]uint64
		positions, err = e.store.Positions(ctx, e.shard, []aggregate.ID{e.id}, true)
		position, found = positions[e.id]
	}
	if err != nil || found {
		return position, found, err
	}
	position, err = e.group.baseline(ctx, e.id, e.start)
	return position, false, err
}

// move sets the position. It lists the aggregate first. If it fails after that, the only effect is
// that the next owner of the shard checks the aggregate.
func (e edit) move(ctx context.Context, position uint64) error {
	if err := e.list(ctx); err != nil {
		return err
	}
	return e.store.PutPosition(ctx, e.shard.Group, e.id, e.epoch, position)
}

// list makes the next owner of the shard check the aggregate. It writes the entry under the new
// epoch and does not delete it, since a former owner could write a deleted entry again.
func (e edit) list(ctx context.Context) error {
	return e.group.store.ListBehind(ctx, e.shard.Group, checkpoint.Revision{Epoch: e.epoch}, checkpoint.Behind{Aggregate: e.id, Head: e.head})
}
