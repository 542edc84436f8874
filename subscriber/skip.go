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
func (d *deliverer) skip(ctx context.Context, st *stream) error {
	v := st.delivery.disposition
	stored, skipped, err := d.committer.skip(ctx, st, checkpoint.Skipped{
		Aggregate: st.id, Number: v.number, EventType: v.eventType, At: v.at, Reason: v.reason, Epoch: d.epoch,
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

// skip records that an event is skipped, and moves the position to it. It returns where the
// position is, and whether the event was skipped: else the handler's own transaction was done after
// all.
func (c *committer) skip(ctx context.Context, st *stream, record checkpoint.Skipped) (stored uint64, skipped bool, err error) {
	p := &st.position
	if err := p.own(ctx); err != nil {
		return 0, false, err
	}
	defer p.mu.Unlock()
	// A claim just before keeps out a former owner, and what may still come of a handler's
	// transaction.
	if p.doubt || !p.fenced || c.table == nil {
		p.doubt = true
		if err := c.fence(ctx, st); err != nil {
			return 0, false, err
		}
	}
	if stored = p.stored.Load(); stored >= record.Number {
		// Either an earlier attempt at this was done, or the handler's own transaction after all.
		skipped, err = c.checkpoint.SkippedUnder(ctx, c.key.Group, st.id, record.Number, c.epoch)
		return stored, skipped, err
	}
	p.doubt = true
	if err := c.storeSkip(ctx, st, stored, record); err != nil {
		return 0, false, err
	}
	p.doubt = false
	p.stored.Store(record.Number)
	c.stats.positions.Add(1)
	return record.Number, true, nil
}

// storeSkip writes record and position.
func (c *committer) storeSkip(ctx context.Context, st *stream, from uint64, record checkpoint.Skipped) error {
	group := c.key.Group
	if c.table != nil {
		advance := Advance{Group: c.group(), Aggregate: st.id, Epoch: c.epoch, From: from, To: record.Number}
		return c.checkpoint.Skip(ctx, group, c.table.advanceItem(advance), record)
	}
	if err := c.checkpoint.PutSkipped(ctx, group, record); err != nil {
		return err
	}
	err := c.config.Positions.Advance(ctx, c.group(), st.id, c.epoch, from, record.Number)
	if errors.Is(err, ErrFenced) {
		// The next owner has the event again, so it was not skipped. If this fails the record says
		// so all the same.
		err = errors.Join(err, c.checkpoint.RemoveSkipped(ctx, group, record))
	}
	return err
}
