package groups

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber"
)

// Positions reads the positions of groups that keep them in a store of their own
// (subscriber.Config.Positions). sqlprojection.Store is one.
type Positions interface {
	// Position returns the number of the last event of an aggregate that a group has handled, and
	// whether there is a position yet. It changes nothing and is safe for concurrent use. It reads
	// what was committed before the call, so it does not read a replica that may be behind.
	Position(ctx context.Context, group subscriber.Group, id aggregate.ID) (position uint64, found bool, err error)
}

// Option is an option of [New].
type Option func(*Groups)

// WithPositions has the positions of groups that keep them in a store of their own read from there.
// Those of other groups are read from the checkpoint table as always. Where several stores are in
// use each needs Groups of its own.
func WithPositions(store Positions) Option { return func(g *Groups) { g.external = store } }

// positions reads those on aggregates of a shard, those that there are.
func (g *Groups) positions(
	ctx context.Context, k checkpoint.Shard, r checkpoint.Membership, ids []aggregate.ID, consistent bool,
) (map[aggregate.ID]uint64, error) {
	if !r.ExternalPositions {
		return g.store.Positions(ctx, k, ids, consistent)
	}
	if err := g.readable(r); err != nil {
		return nil, err
	}
	positions := map[aggregate.ID]uint64{}
	var mu sync.Mutex
	err := inParallel(readers, len(ids), func(i int) error {
		position, found, err := g.external.Position(ctx, subscriber.Group(k.Group), ids[i])
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

// readable refuses a group whose positions nobody has told how to read.
func (g *Groups) readable(r checkpoint.Membership) error {
	if r.ExternalPositions && g.external == nil {
		return fmt.Errorf("%w: make Groups with WithPositions and that store, to have it read", ErrExternalPositions)
	}
	return nil
}

// own refuses a group whose positions cannot be edited here.
func (e edit) own() error {
	if e.external {
		return fmt.Errorf("%w: change the position there, while the aggregate is parked or the group paused and idle", ErrExternalPositions)
	}
	return nil
}
