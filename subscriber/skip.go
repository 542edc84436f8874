package subscriber

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// errCommitting reports that a handler has not returned from a transaction that moves the position,
// although its message was given up.
var errCommitting = errors.New("the handler of the event has not returned from its transaction")

// skip passes over an event and stores a record of it.
func (d *deliverer) skip(ctx context.Context, st *stream) error {
	v := st.Work.delivery.disposition
	stored, skipped, err := d.committer.skip(ctx, st, checkpoint.Skipped{
		Aggregate: st.ID, Number: v.number, EventType: v.eventType, At: v.at, Reason: v.reason, Epoch: d.epoch,
	})
	if err != nil {
		return err
	}
	if skipped {
		d.stats.skipped.Add(1)
		d.logger.Error("Event is skipped, with a record of it", v.err, v.fields(st))
	}
	d.ack(st, stored)
	return nil
}

// skip records that an event is skipped, and moves the position to it. It returns the position.
// skipped is false if the handler's transaction had committed instead.
func (c *committer) skip(ctx context.Context, st *stream, record checkpoint.Skipped) (stored uint64, skipped bool, err error) {
	p := &st.Work.position
	if err := p.own(ctx); err != nil {
		return 0, false, err
	}
	defer p.mu.Unlock()
	// A claim just before fences former owners and transactions of handlers whose outcome is
	// unknown.
	if p.doubt || !p.fenced || c.table == nil && !c.inRows {
		p.doubt = true
		if err := c.fence(ctx, st); err != nil {
			return 0, false, err
		}
	}
	if stored = st.Stored.Load(); stored >= record.Number {
		// Either an earlier attempt of this skip or the handler's transaction has moved the
		// position.
		skipped, err = c.checkpoint.SkippedUnder(ctx, c.key.Group, st.ID, record.Number, c.epoch)
		return stored, skipped, err
	}
	p.doubt = true
	if err := c.storeSkip(ctx, st, stored, record); err != nil {
		return 0, false, err
	}
	p.doubt = false
	st.Stored.Store(record.Number)
	c.stats.positions.Add(1)
	return record.Number, true, nil
}

// storeSkip writes the record and the position.
func (c *committer) storeSkip(ctx context.Context, st *stream, from uint64, record checkpoint.Skipped) error {
	group := c.key.Group
	if c.inRows {
		return c.checkpoint.Skip(ctx, group, c.checkpoint.AdvanceItem(group, st.ID, c.epoch, from, record.Number), record)
	}
	if c.table != nil {
		advance := Advance{Group: c.group(), Aggregate: st.ID, Epoch: c.epoch, From: from, To: record.Number}
		return c.checkpoint.Skip(ctx, group, c.table.advanceItem(advance), record)
	}
	if err := c.checkpoint.PutSkipped(ctx, group, record); err != nil {
		return err
	}
	err := c.positionStore.Advance(ctx, c.group(), st.ID, c.epoch, from, record.Number)
	if errors.Is(err, ErrFenced) {
		// The next owner delivers the event again, so it was not skipped. If the removal fails, the
		// record remains although the event was not skipped.
		err = errors.Join(err, c.checkpoint.RemoveSkipped(ctx, group, record))
	}
	return err
}

// forgetLateSkips deletes the records of events that this owner has handled, but that a former
// owner has skipped or deferred since this owner has read the position from. A transaction of the
// former owner arrived late, which is possible until this owner writes to the position. It has
// moved the position, which shows it. The caller holds the position's lock.
func (c *committer) forgetLateSkips(ctx context.Context, st *stream, from, position uint64) error {
	handled := min(position, c.sequencer.AckedOf(st))
	if handled <= from {
		return nil
	}
	for record, err := range c.checkpoint.SkippedBehind(ctx, c.key.Group, st.ID, from) {
		if err == nil && record.Number <= handled && record.Epoch < c.epoch {
			err = c.checkpoint.RemoveSkipped(ctx, c.key.Group, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
