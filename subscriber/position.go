package subscriber

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Position is the group's position on the aggregate of a message. A handler whose
// effects are in DynamoDB commits it together with them, so that they happen exactly
// once. Without that, the subscriber stores the position some time after the ack.
type Position struct {
	shard  *shard
	stream *stream
	number uint64
}

// transactional is what the journal's own position store can do beyond [PositionStore].
type transactional interface {
	AdvanceItem(group Group, id aggregate.ID, epoch, from, to uint64) types.TransactWriteItem
}

// Advance is the write that moves the position to the message's event.
type Advance struct {
	Item  types.TransactWriteItem
	epoch uint64
	to    uint64
}

// Done tells from the old item of a write whose condition was false (DynamoDB returns it with the
// cancellation reason) that an earlier attempt at the same write had succeeded.
func (a Advance) Done(old map[string]types.AttributeValue) bool {
	return checkpoint.Reached(old, a.epoch, a.to)
}

// Commit runs a transaction of the caller's that contains the Advance item. While it runs
// the subscriber leaves the position alone. When run succeeds the position counts as stored, and
// the handler acks the message.
//
// Errors: [ErrNoPosition], and those of run.
func (p *Position) Commit(ctx context.Context, run func(context.Context, Advance) error) error {
	store, ok := p.shard.config.Positions.(transactional)
	if !ok {
		return fmt.Errorf("%w: Config.Positions is a %T", ErrNoPosition, p.shard.config.Positions)
	}
	stored := &p.stream.position
	stored.mu.Lock()
	defer stored.mu.Unlock()
	if err := p.shard.settlePosition(ctx, p.stream); err != nil {
		return err
	}
	from, epoch := stored.stored.Load(), p.shard.epoch
	if from >= p.number {
		return nil // the handler committed before, and nacked all the same
	}
	err := run(ctx, Advance{
		Item:  store.AdvanceItem(p.shard.key.Group, p.stream.id, epoch, from, p.number),
		epoch: epoch, to: p.number,
	})
	if err != nil {
		stored.doubt = true
		p.shard.fenced(err)
		return err
	}
	stored.stored.Store(p.number)
	p.shard.stats.positions.Add(1)
	return nil
}
