package subscriber

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// Position is the group's position on the aggregate of a message. A handler can commit it together
// with its effects, so that they happen exactly once: with [Position.Commit] if the effects are in
// DynamoDB, and with [Position.CommitIn] if they are in another store. If the handler commits no
// position, the subscriber stores it some time after the ack. At any time only one of the two
// writes the position.
type Position struct {
	deliverer *deliverer
	stream    *stream
	record    *journal.Record
	attempt   int
	// batched reports that a transaction of this delivery was for several events, so any of them
	// may be why it failed.
	batched atomic.Bool
}

// Advance is the move of a position to the message's event. A handler makes it in a transaction of
// its own. The fields are the arguments of [PositionStore].Advance.
type Advance struct {
	Group     GroupKey     // the consumer group
	Aggregate aggregate.ID // the aggregate whose position moves
	Epoch     uint64       // the epoch of the shard's owner
	From, To  uint64       // the position before and after

	// Item is the move as a write of a DynamoDB transaction. Only [Position.Commit] and
	// [Position.CommitAhead] set it.
	Item types.TransactWriteItem
}

// Done reports whether an earlier attempt at the same write has succeeded. old is the old item of
// the write whose condition was false, which DynamoDB returns with the cancellation reason.
func (a Advance) Done(old map[string]types.AttributeValue) bool {
	return checkpoint.Reached(old, a.Epoch, a.To)
}

// Moved reports whether an earlier attempt of this member has moved the position to another number,
// after the attempt was given up. Then no other member has taken over, and a new attempt reads the
// result of the earlier one.
func (a Advance) Moved(old map[string]types.AttributeValue) bool {
	return checkpoint.Moved(old, a.Epoch, a.From)
}

// Commit runs a DynamoDB transaction of the caller that must contain the Item of the [Advance].
// While run is executing, the subscriber does not write the position. If run succeeds, the position
// counts as stored, and the handler acks the message.
//
// If the position is stored already, Commit returns nil without a call of run, and the handler acks
// the message too. If an earlier handler of the aggregate has not returned from its run, Commit
// waits for it until ctx ends.
//
// run must end with its context. Until it returns, the aggregate waits, because only its result
// says whether the effects have happened.
//
// Errors: those of run, those of ctx, [ErrNoPosition] if positions are not in the journal's own
// table, [ErrFenced] after the shard was given up, and the errors of reading a position after a
// failed attempt.
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

// CommitIn is like [Position.Commit], for positions in another store. In one transaction of that
// store, run writes its effects and does what store.Advance would do with the [Advance].
//
// run must return nil only if the transaction is committed, and [ErrFenced] if the store refuses
// the Advance. After any other error it may be unknown whether the transaction was committed:
// before the next attempt the subscriber claims the position again, which shows it. So Claim must
// wait for, or prevent, a transaction that was given up but may still commit, as a row lock does.
//
// Errors: [ErrNoPosition] if store is not Config.Positions, those of ctx and of store.Claim, and
// those of run.
func (p *Position) CommitIn(ctx context.Context, store PositionStore, run func(context.Context, Advance) error) error {
	if err := p.isIn(store); err != nil {
		return err
	}
	return p.commit(ctx, p.alone, run)
}

// isIn returns an error if the subscriber keeps its positions in another store.
func (p *Position) isIn(store PositionStore) error {
	if !same(p.deliverer.config.Positions, store) {
		return fmt.Errorf("%w: set Positions of the subscriber's Config to the %T whose Handle is the handler", ErrNoPosition, store)
	}
	return nil
}

// positionsOfTable returns the journal's own store of positions. It returns an error if positions
// are in another store.
func (d *deliverer) positionsOfTable() (*tablePositions, error) {
	if d.broadcast {
		return nil, fmt.Errorf("%w: a broadcast has none; use NewSubscriber, with a consumer group", ErrNoPosition)
	}
	table, ok := d.config.Positions.(*tablePositions)
	if !ok {
		return nil, fmt.Errorf("%w: Config.Positions of the subscriber is a %T; leave it out, or use the handler of that store", ErrNoPosition, d.config.Positions)
	}
	return table, nil
}

// alone returns the position after a commit that handles only the message's event.
func (p *Position) alone() uint64 { return p.record.Number }

func (p *Position) commit(ctx context.Context, to func() uint64, run func(context.Context, Advance) error) error {
	return p.deliverer.committer.commit(ctx, p.stream, p.record.Number, to, run)
}

// same compares two stores. It does not panic on stores that cannot be compared, such as a struct
// with a map.
func same(a, b PositionStore) bool {
	return a != nil && reflect.ValueOf(a).Comparable() && a == b
}

// lock is a mutex whose Lock method has a context, because handlers hold it in transactions that
// may hang. The zero value is unlocked.
type lock struct {
	made sync.Once
	slot chan struct{} // contains an element while the lock is held
}

func (l *lock) own() chan struct{} {
	l.made.Do(func() { l.slot = make(chan struct{}, 1) })
	return l.slot
}

// Lock waits for the lock. If the context ends, it returns the cause of that, even if the lock is
// free: a caller that has no time left must not begin.
func (l *lock) Lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.own() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *lock) TryLock() bool {
	select {
	case l.own() <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *lock) Unlock() { <-l.slot }
