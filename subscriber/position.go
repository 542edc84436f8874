package subscriber

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// Position is the group's position on the aggregate of a message. A handler commits it together
// with its effects, so that they happen exactly once: with [Position.Commit] where the effects are
// in DynamoDB, with [Position.CommitIn] where they are in another store. Without that, the
// subscriber stores the position some time after the ack. Either way it has one owner at a time:
// the subscriber, or the handler that commits it.
type Position struct {
	deliverer *deliverer
	stream    *stream
	record    *journal.Record
	attempt   int
	// batched: a transaction of this delivery was for several events, so any of them may be why it
	// fails.
	batched atomic.Bool
}

// Advance is the move of a position to the message's event: what [PositionStore].Advance is given,
// to be done in a transaction of the handler's.
type Advance struct {
	Group     Group
	Aggregate aggregate.ID
	Epoch     uint64
	From, To  uint64

	// Item is the move as a write of a DynamoDB transaction. Only [Position.Commit] returns it.
	Item types.TransactWriteItem
}

// Done finds out from the old item of a write whose condition was false (DynamoDB returns it with
// the cancellation reason) that an earlier attempt at the same write had succeeded.
func (a Advance) Done(old map[string]types.AttributeValue) bool {
	return checkpoint.Reached(old, a.Epoch, a.To)
}

// Moved finds out from the old item that an earlier attempt of this member, at another write, has
// moved the position after it was given up. Nobody has taken over; to begin again shows what it
// did.
func (a Advance) Moved(old map[string]types.AttributeValue) bool {
	return checkpoint.Moved(old, a.Epoch, a.From)
}

// Commit runs a DynamoDB transaction of the caller's that contains the Advance's Item. While it
// runs the subscriber leaves the position alone. When run succeeds the position counts as stored,
// and the handler acks the message. It does not run where the position is stored already: the
// handler acks then, too. Where an earlier handler of the aggregate, whose message was given up,
// has not returned from its run, it waits for that as long as ctx lasts.
//
// run should end with its context. While it does not, the aggregate waits: nothing but run's return
// reports whether it has had its effects.
//
// Errors: [ErrNoPosition] where positions are not in the journal's own table, [ErrFenced] once the
// shard was given up, those of ctx, those of reading the position again after a failed attempt, and
// those of run.
func (p *Position) Commit(ctx context.Context, run func(context.Context, Advance) error) error {
	store, err := p.deliverer.positionsOfTable()
	if err != nil {
		return err
	}
	return p.commit(ctx, p.alone, func(ctx context.Context, a Advance) error {
		a.Item = store.advanceItem(a)
		return run(ctx, a)
	})
}

// CommitIn is Commit for positions in a store of the user's. run makes its effects and does what
// store.Advance would do with the [Advance], both in one transaction of that store. It must return
// nil only if that is committed, and [ErrFenced] if the store refuses the Advance. After any other
// error nobody needs to know whether it was committed: before the next attempt the subscriber
// claims the position again, which shows it. So a Claim must wait for, or prevent, what may still
// come of a transaction that was given up, as the lock of a row does.
//
// Errors: [ErrNoPosition] where store is not Config.Positions, for then the subscriber would keep
// the position elsewhere, those of ctx and of store.Claim, and those of run.
func (p *Position) CommitIn(ctx context.Context, store PositionStore, run func(context.Context, Advance) error) error {
	if own := p.deliverer.config.Positions; !same(own, store) {
		return fmt.Errorf("%w: the subscriber's Config.Positions is a %T, not the handler's %T", ErrNoPosition, own, store)
	}
	return p.commit(ctx, p.alone, run)
}

// positionsOfTable returns the journal's own table of positions, if they are there.
func (d *deliverer) positionsOfTable() (*tablePositions, error) {
	if d.config.Broadcast {
		return nil, fmt.Errorf("%w: a broadcast has no positions", ErrNoPosition)
	}
	table, ok := d.config.Positions.(*tablePositions)
	if !ok {
		return nil, fmt.Errorf("%w: Config.Positions is a %T", ErrNoPosition, d.config.Positions)
	}
	return table, nil
}

// alone is the end of a commit of the message's event alone.
func (p *Position) alone() uint64 { return p.record.Number }

func (p *Position) commit(ctx context.Context, to func() uint64, run func(context.Context, Advance) error) error {
	return p.deliverer.committer.commit(ctx, p.stream, p.record.Number, to, run)
}

// same does not panic on stores that cannot be compared, such as a struct with a map.
func same(a, b PositionStore) bool {
	return a != nil && reflect.ValueOf(a).Comparable() && a == b
}
