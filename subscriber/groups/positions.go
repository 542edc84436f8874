package groups

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber"
)

// Positions reads external positions: positions that members store outside of the checkpoint table
// (subscriber.Config.Positions). sqlprojection.Store implements it.
type Positions interface {
	// Position returns the number of the last event of an aggregate that a group has handled, and
	// whether there is a position yet. It must not change anything, and must be safe for concurrent
	// use. It must return everything that was committed before the call, so it must not read a
	// replica that may be behind.
	Position(ctx context.Context, group subscriber.GroupKey, id aggregate.ID) (position uint64, found bool, err error)
}

// Option is an option of [New] and [Of].
type Option func(*Groups)

// WithPositions returns an option to read external positions from a store. The positions of other
// groups are read from the checkpoint table, or from the rows of a projection.Rows, which this
// package finds by itself. If several stores are in use, make one [Groups] for each.
func WithPositions(store Positions) Option { return func(g *Groups) { g.external = store } }

// WithReplay returns an option to confirm that groups with subscriber.Config.NoReplay may deliver
// events again. Without it, [Group.Reset], [Group.Remove] and [Groups.ResetAggregate] refuse that
// with a [*ReplayError].
func WithReplay() Option { return func(g *Groups) { g.replays = true } }

// positions returns the positions in aggregates of a shard. Aggregates without a position are not
// in the map.
func (t tables) positions(
	ctx context.Context, k checkpoint.Shard, r checkpoint.Membership, ids []aggregate.ID, consistent bool,
) (map[aggregate.ID]uint64, error) {
	if !r.ExternalPositions {
		return t.store.In(r.Rows).Positions(ctx, k, ids, consistent)
	}
	if err := t.readable(r); err != nil {
		return nil, err
	}
	positions := map[aggregate.ID]uint64{}
	var mu sync.Mutex
	err := inParallel(readers, len(ids), func(i int) error {
		position, found, err := t.external.Position(ctx, subscriber.GroupKey(k.Group), ids[i])
		if err != nil {
			return fmt.Errorf("read position on %s: %w", ids[i], err)
		}
		if found {
			mu.Lock()
			defer mu.Unlock()
			positions[ids[i]] = position
		}
		return nil
	})
	return positions, err
}

// readable returns an error if the group has external positions and there is no store to read them.
func (t tables) readable(r checkpoint.Membership) error {
	if r.ExternalPositions && t.external == nil {
		return fmt.Errorf("%w: to read them, make Groups with WithPositions and their store", ErrExternalPositions)
	}
	return nil
}

// forward returns an error if a position is before the current one, and the group must not be set
// back. Rows can be set back to 0.
func (e edit) forward(ctx context.Context, position uint64) error {
	if inRow := e.rows != nil && position > 0; !inRow && !e.guarded {
		return nil
	}
	current, _, err := e.position(ctx)
	switch {
	case err != nil || position >= current:
		return err
	case e.guarded:
		return &ReplayError{}
	}
	return fmt.Errorf("%w: event %d of %s is before %d: reset it to 0", ErrRowAhead, position, e.id, current)
}

// own returns an error if the group has external positions, which cannot be edited here.
func (e edit) own() error {
	if e.external {
		return fmt.Errorf("%w: change the position in its store, while the aggregate is parked or the group is paused and idle", ErrExternalPositions)
	}
	return nil
}
