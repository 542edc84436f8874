package subscriber

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// committer stores what the group has handled of a shard: positions, the cursor, and the list of
// aggregates that the cursor has passed unfinished.
type committer struct {
	*term
	sequencer *sequencer

	since time.Time // the group leaves out what occurred before; zero for nothing
	// fresh: nobody has owned the shard since the group began or was reset, so the checkpoint table
	// has nothing of it.
	fresh bool
	table *tablePositions // nil where positions are elsewhere
	// commits: handlers of the shard commit positions in transactions of their own.
	commits atomic.Bool
	// revisions counts the writes to the list.
	revisions atomic.Uint64
	saved     bool // this owner has stored the cursor; flush alone uses it
}

func newCommitter(t *term, q *sequencer, r checkpoint.Membership) *committer {
	table, _ := t.config.Positions.(*tablePositions)
	return &committer{
		term: t, sequencer: q, since: r.Start, table: table, fresh: table != nil && t.epoch == r.Base+1,
	}
}

// begin reads where a former owner was, and has the sequencer go on from there. It returns the
// cursor.
func (c *committer) begin(ctx context.Context) (at int64, err error) {
	if !c.since.IsZero() {
		at = max(0, c.since.UnixMilli())
	}
	var progress checkpoint.Progress
	if !c.fresh {
		if progress, err = c.checkpoint.Progress(ctx, c.key); err != nil {
			return 0, err
		}
	}
	if !progress.Cursor.IsZero() {
		at = progress.Cursor.UnixMilli()
	}
	reconciled := progress.Reconciled
	if reconciled.IsZero() {
		reconciled = c.now() // reading the tail from its beginning shows as much
	}
	c.sequencer.begin(savedCursor{at, progress.Reconciled}, reconciled, progress.Behind)
	return at, nil
}

// run writes positions and cursors until ctx ends. A flush under way is not cut off.
func (c *committer) run(ctx context.Context) {
	ticker := time.NewTicker(c.config.flushInterval())
	defer ticker.Stop()
	cursors := time.Now().Add(c.config.cursorInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.verifyParked(ctx)
		due := time.Now().After(cursors)
		c.failedToWrite(c.flush(due))
		if due {
			cursors = time.Now().Add(c.config.cursorInterval)
		}
	}
}

// flush writes the positions that moved, and then the cursor: it may only pass what is stored. What
// cannot be written stays dirty and is written with the next flush.
func (c *committer) flush(cursor bool) []error {
	var hangs atomic.Bool // then the rest would only hang as well, and Close with it
	var rows []func() error
	for _, st := range c.sequencer.dirtyStreams() {
		rows = append(rows, func() error {
			switch {
			case c.isLost():
				return ErrFenced
			case hangs.Load():
				return nil
			}
			once, cancel := context.WithTimeout(c.closing, writeTimeout)
			defer cancel()
			err := c.flushPosition(once, st)
			if once.Err() != nil {
				hangs.Store(true)
			}
			return err
		})
	}
	errs := c.inParallel(rows)
	if cursor && !c.config.Broadcast && !c.isLost() && !hangs.Load() {
		once, cancel := context.WithTimeout(c.closing, writeTimeout)
		defer cancel()
		errs = append(errs, c.saveCursor(once))
	}
	return errs
}

// finish stores what is left when the shard ends, again after errors.
func (c *committer) finish() {
	ctx, cancel := context.WithTimeout(c.closing, writeTimeout)
	defer cancel()
	errs := c.flush(true)
	c.failedToWrite(errs)
	for failures := 1; worst(errs) != nil && !c.isLost(); failures++ {
		if pause(ctx, backoffOf(minFailurePause, time.Second, failures)); ctx.Err() != nil {
			c.failed("Gave up writing a checkpoint: what was acked since the last one comes again", errs)
			return
		}
		if errs = c.flush(true); c.fenced(worst(errs)) {
			return
		}
	}
}

func (c *committer) failedToWrite(errs []error) {
	c.failed("Cannot write a checkpoint, will try again", errs)
}

// flushPosition writes a stream's position, unless a handler's own transaction did.
func (c *committer) flushPosition(ctx context.Context, st *stream) error {
	if !st.position.mu.TryLock() {
		return nil // a handler is committing it, for as long as that may take; the stream stays dirty
	}
	defer st.position.mu.Unlock()
	if err := c.resolve(ctx, st); err != nil {
		return err
	}
	stored := st.position.stored.Load()
	if acked := c.sequencer.ackedOf(st); acked > stored {
		var err error
		if stored, err = c.store(ctx, st, stored, acked); err != nil {
			return err
		}
	}
	c.sequencer.clean(st, stored)
	return nil
}

// commitAck stores the position of a stream that has acked events since.
func (c *committer) commitAck(st *stream) error {
	if c.config.Broadcast || c.sequencer.ackedOf(st) <= st.position.stored.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.messageCtx, writeTimeout)
	defer cancel()
	return c.flushPosition(ctx, st)
}

// store moves a position forward and returns where it is. The caller holds the position's mutex.
func (c *committer) store(ctx context.Context, st *stream, from, to uint64) (position uint64, err error) {
	switch {
	case c.config.Broadcast:
		position = to
	case c.table != nil:
		position, err = c.checkpoint.StorePosition(ctx, c.key.Group, st.id, c.epoch, to)
	default:
		position, err = to, c.config.Positions.Advance(ctx, c.group(), st.id, c.epoch, from, to)
		st.position.doubt = err != nil
	}
	if err != nil {
		return 0, err
	}
	st.position.stored.Store(position)
	if !c.config.Broadcast {
		c.stats.positions.Add(1)
	}
	return position, nil
}

// resolve finds out what has become of a write that failed. The caller holds the position's mutex.
func (c *committer) resolve(ctx context.Context, st *stream) error {
	if !st.position.doubt {
		return nil
	}
	return c.fence(ctx, st)
}

// fence keeps all others from moving a position: former owners, and what may still come of a
// transaction that failed. The caller holds the position's mutex.
func (c *committer) fence(ctx context.Context, st *stream) error {
	position, _, err := c.config.Positions.Claim(ctx, c.group(), st.id, c.epoch)
	if err != nil {
		return err
	}
	st.position.doubt, st.position.fenced = false, true
	st.position.stored.Store(position)
	return nil
}

// committed reports where a position is stored, after all that handlers may have done.
func (c *committer) committed(st *stream) (uint64, error) {
	if err := st.position.own(c.messageCtx); err != nil {
		return 0, err
	}
	defer st.position.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.messageCtx, writeTimeout)
	defer cancel()
	err := c.resolve(ctx, st)
	return st.position.stored.Load(), err
}

// saveCursor moves the shard's cursor as far as it can go: up to where the last trailing read is,
// and not past an event that is not acked and stored, unless its aggregate is on the list.
func (c *committer) saveCursor(ctx context.Context) error {
	p := c.sequencer.progress()
	var rows []func() error
	for _, st := range p.list {
		rows = append(rows, func() error { return c.list(ctx, st) })
	}
	if err := worst(c.inParallel(rows)); err != nil {
		return err
	}
	// A former owner may believe in entries of its own, and have its cursor pass what they lead to.
	// So none is deleted before its cursor is refused.
	if p.next != p.saved || len(p.unlist) > 0 && !c.saved {
		if err := c.checkpoint.SaveCursor(ctx, c.key, c.epoch, time.UnixMilli(p.next.at), p.next.reconciledAt); err != nil {
			return err
		}
		c.sequencer.saveCursor(p)
		c.saved = true
	}
	rows = nil
	for _, st := range p.unlist {
		rows = append(rows, func() error { return c.unlist(ctx, st) })
	}
	return worst(c.inParallel(rows))
}

// worst returns one of some errors: that the shard is another's, if it is among them.
func worst(errs []error) (first error) {
	for _, err := range errs {
		if errors.Is(err, ErrFenced) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// shutOut keeps what handlers have sent from moving positions once the shard is free: whoever waits
// for that, to clear a read model say, relies on it. The epoch is the next owner's; a position that
// it has claimed, or a later one, is shut out already. That a handler begins nothing more is seen
// to by [Position]. Where it fails the member notes that in the membership.
func (c *committer) shutOut() bool {
	ctx, cancel := context.WithTimeout(c.closing, writeTimeout)
	defer cancel()
	var rows []func() error
	for _, st := range c.sequencer.all() {
		if st.position.isResolved() {
			continue
		}
		rows = append(rows, func() error {
			_, _, err := c.config.Positions.Claim(ctx, c.group(), st.id, c.epoch+1)
			if errors.Is(err, ErrFenced) {
				return nil
			}
			return err
		})
	}
	errs := c.inParallel(rows)
	c.failed("Cannot shut out what handlers have sent: their transactions may still move positions", errs)
	return errors.Join(errs...) == nil
}
