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

// edit is an operator's hold on the shard of an aggregate.
type edit struct {
	store *checkpoint.Store
	id    aggregate.ID
	head  uint64 // the number of the aggregate's last event
	group checkpoint.Group
	epoch uint64
	start time.Time // the group's
}

// editAttempts is how often an edit is done again whose shard was taken away before it had ended.
const editAttempts = 5

// edit edits rows of an aggregate, which it must be possible to do again.
func (g *Groups) edit(ctx context.Context, what, group string, id aggregate.ID, do func(context.Context, edit) error) error {
	k := checkpoint.Key{Group: group, Topic: id.Type}
	err := id.Validate()
	for attempt := 1; err == nil; attempt++ {
		var head uint64
		if head, err = g.version(ctx, id); err != nil {
			break
		}
		shard := g.journal.Shard(id)
		err = g.store.Operate(ctx, k, shard, func(ctx context.Context, s checkpoint.Shard, r checkpoint.Roster) error {
			return do(ctx, edit{store: g.store, id: id, head: head, group: s.Group, epoch: r.Epochs[shard], start: r.Start})
		})
		if err == nil {
			return nil
		}
		if errors.Is(err, checkpoint.ErrFenced) && attempt < editAttempts {
			err = ctx.Err()
		}
	}
	return fmt.Errorf("%s of %s for consumer group %q: %w", what, id, group, err)
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

// position gives where the group is, and keeps a former owner from moving it.
func (g *Groups) position(ctx context.Context, e edit) (uint64, error) {
	position, found, err := g.store.Claim(ctx, e.group, e.id, e.epoch)
	if err != nil || found {
		return position, err
	}
	return g.baseline(ctx, e.id, e.start)
}

// move puts the position anywhere. The aggregate is listed first: should this end in between, nothing has happened but
// that the next owner looks at it.
func (e edit) move(ctx context.Context, position uint64) error {
	if err := e.list(ctx); err != nil {
		return err
	}
	return e.store.PutPosition(ctx, e.group, e.id, e.epoch, position)
}

// list has the next owner of the shard look at the aggregate. The entry is never deleted here, but written under the new epoch,
// or a former owner could make it again.
func (e edit) list(ctx context.Context) error {
	return e.store.ListBehind(ctx, e.group, e.epoch, checkpoint.Behind{Aggregate: e.id, Head: e.head})
}
