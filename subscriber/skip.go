package subscriber

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// errCommitting: a handler that was given up is still in the middle of a transaction that moves the
// position.
var errCommitting = errors.New("the handler of the event has not returned from its transaction")

// skip passes over an event and keeps a record of it.
func (sh *shard) skip(ctx context.Context, st *stream) error {
	if err := st.position.own(ctx); err != nil {
		return err
	}
	defer st.position.mu.Unlock()
	_, together := sh.config.Positions.(*tablePositions)
	if !together {
		// A claim just before keeps out a former owner, and what may still come of a handler's
		// transaction.
		st.position.doubt = true
	}
	if err := sh.settlePosition(ctx, st); err != nil {
		return err
	}
	v, stored := st.verdict, st.position.stored.Load()
	if stored < v.number {
		st.position.doubt = true
		if err := sh.storeSkip(ctx, st, stored); err != nil {
			return err
		}
		st.position.doubt = false
		st.position.stored.Store(v.number)
		sh.stats.positions.Add(1)
	} else {
		// Either an earlier attempt at this was done, or the handler's own transaction after all.
		skipped, err := sh.checkpoint.SkippedUnder(ctx, sh.key.Group, st.id, v.number, sh.epoch)
		if err != nil {
			return err
		}
		if !skipped {
			sh.ack(st, stored)
			return nil
		}
	}
	sh.stats.skipped.Add(1)
	sh.logger.Error("Event is skipped, with a record of it", v.err, v.fields(st))
	sh.ack(st, max(v.number, stored))
	return nil
}

// storeSkip writes record and position.
func (sh *shard) storeSkip(ctx context.Context, st *stream, from uint64) error {
	v, group := st.verdict, sh.key.Group
	record := checkpoint.Skipped{
		Aggregate: st.id, Number: v.number, EventType: v.eventType, At: v.at, Reason: v.reason, Epoch: sh.epoch,
	}
	if store, ok := sh.config.Positions.(*tablePositions); ok {
		advance := Advance{Group: sh.group(), Aggregate: st.id, Epoch: sh.epoch, From: from, To: v.number}
		return sh.checkpoint.Skip(ctx, group, store.advanceItem(advance), record)
	}
	if err := sh.checkpoint.PutSkipped(ctx, group, record); err != nil {
		return err
	}
	err := sh.config.Positions.Advance(ctx, sh.group(), st.id, sh.epoch, from, v.number)
	if errors.Is(err, ErrFenced) {
		// The next owner has the event again, so it was not skipped. If this fails the record says
		// so all the same.
		err = errors.Join(err, sh.checkpoint.RemoveSkipped(ctx, group, record))
	}
	return err
}
