package subscriber

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/subscriber/internal/sequence"
)

// committer stores what the group has handled of a shard: positions, the cursor, and the behind
// list.
type committer struct {
	*term
	sequencer *sequencer

	since time.Time // the group leaves out earlier events; zero for none
	// fresh reports that the shard had no owner since the group was created or reset, so the
	// checkpoint table has no rows of the shard.
	fresh         bool
	table         *tablePositions // nil if positions are in another store
	inRows        bool            // positions are in rows of a read model
	positionStore guardedPositions
	// commits reports that handlers of the shard commit positions in their own transactions.
	commits atomic.Bool
	// revisions counts the writes to the behind list.
	revisions atomic.Uint64
	saved     bool // whether this owner has stored the cursor; only flush uses it
	// begun reports that a visit has read the progress of former owners, and complete that a sweep
	// has read all that it has to read.
	begun, complete atomic.Bool
	// reconciling is where a reconciliation was interrupted that is continued in sweeps.
	reconciling atomic.Pointer[storage.Reconciling]
	// unread reports whether an aggregate may have an entry on the behind list that was not read.
	// It is nil if the whole list was read.
	unread func(aggregate.ID) bool
	// deferredDue returns the time of the first attempt at a deferred event. It is nil before the
	// end of the term.
	deferredDue func() time.Time
}

func newCommitter(t *term, q *sequencer, r checkpoint.Membership) *committer {
	table, _ := t.config.Positions.(*tablePositions)
	inRows := rowsOf(t.config.Positions) != nil
	return &committer{
		term: t, sequencer: q, since: r.Start, table: table, inRows: inRows, positionStore: guardedPositions{t.config.Positions},
		fresh: (table != nil || inRows) && t.epoch == r.Base+1,
	}
}

// begin reads the progress of former owners and passes it to the sequencer. It returns the cursor.
func (c *committer) begin(ctx context.Context) (at int64, err error) {
	if !c.since.IsZero() {
		at = max(0, c.since.UnixMilli())
	}
	var progress checkpoint.Progress
	switch {
	case c.fresh:
	case c.hinted():
		progress, err = c.progressOfHints(ctx)
	default:
		progress, err = c.checkpoint.Progress(ctx, c.key)
	}
	if err != nil {
		return 0, err
	}
	if !progress.Cursor.IsZero() {
		at = progress.Cursor.UnixMilli()
	}
	if c.visit != nil {
		c.reconciling.Store(progress.Reconciling)
	}
	reconciled := progress.Reconciled
	if reconciled.IsZero() && !c.hinted() {
		// Reading the tail from its beginning finds as much as a reconciliation.
		reconciled = c.now()
	}
	if c.fresh && c.config.LatestOnly && c.visit == nil && c.config.Timing.ReconcileInterval > 0 {
		// The heads show all aggregates, so the events before need not be read.
		at, reconciled = c.now().Add(-clocksDiffer).UnixMilli(), time.UnixMilli(0)
	}
	c.sequencer.Begin(sequence.Cursor{At: at, ReconciledAt: progress.Reconciled}, reconciled, progress.Behind)
	return at, nil
}

// run writes positions and cursors until ctx ends, in intervals and when the sequencer requests a
// flush. After an error it waits for the interval. It does not interrupt a flush that is in
// progress.
func (c *committer) run(ctx context.Context) {
	ticker := time.NewTicker(c.config.Timing.flushInterval())
	defer ticker.Stop()
	cursors := time.Now().Add(c.limits.cursorInterval)
	full := c.sequencer.WantsFlush()
	for {
		select {
		case <-ctx.Done():
			return
		case <-full:
		case <-ticker.C:
		}
		if !c.hinted() {
			c.verifyParked(ctx)
		}
		due := time.Now().After(cursors)
		errs := c.flush(due)
		c.failedToWrite(errs)
		if full = c.sequencer.WantsFlush(); worst(errs) != nil {
			full = nil
		}
		if due {
			cursors = time.Now().Add(c.limits.cursorInterval)
		}
	}
}

// flush writes the positions that have changed, and then the cursor, which may only pass events
// whose positions are stored. A position that cannot be written stays dirty and is written with the
// next flush.
func (c *committer) flush(cursor bool) []error {
	// If one request hangs, the others would only hang too, and Close would wait for them.
	var hangs atomic.Bool
	var rows []func() error
	for _, st := range c.sequencer.DirtyStreams() {
		rows = append(rows, func() error {
			switch {
			case c.IsLost():
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
	if cursor && !c.broadcast && !c.leavesCursor() && !c.IsLost() && !hangs.Load() {
		once, cancel := context.WithTimeout(c.closing, writeTimeout)
		defer cancel()
		errs = append(errs, c.saveCursor(once))
	}
	return errs
}

// finish stores all remaining positions when the shard ends, and retries after errors.
func (c *committer) finish(deferredDue func() time.Time) {
	c.deferredDue = deferredDue
	ctx, cancel := context.WithTimeout(c.closing, writeTimeout)
	defer cancel()
	errs := c.flush(true)
	c.failedToWrite(errs)
	for failures := 1; worst(errs) != nil && !c.IsLost(); failures++ {
		if retry.Sleep(ctx, retry.Jitter(retry.Backoff(minFailurePause, time.Second, failures))); ctx.Err() != nil {
			c.failed("Gave up writing a checkpoint: events that were acked since the last one will be delivered again", errs)
			return
		}
		if errs = c.flush(true); c.loseIfFenced(worst(errs)) {
			return
		}
	}
	c.listAttempts(ctx)
}

// attemptsAtEnd is the maximum number of entries that are written at the end of a term because of
// failed attempts.
const attemptsAtEnd = 1000

// listAttempts stores how often the next events of streams have failed, so that the next owner
// continues to count. A crash loses the attempts since the entry was written.
func (c *committer) listAttempts(ctx context.Context) {
	if !c.config.Failures.counts() && c.visit == nil {
		return
	}
	var rows []func() error
	for _, st := range c.sequencer.Failing(attemptsAtEnd) {
		rows = append(rows, func() error { return c.list(ctx, st) })
	}
	c.failed("Cannot store failed attempts: the next owner counts from the last stored ones", c.inParallel(rows))
}

func (c *committer) failedToWrite(errs []error) {
	c.failed("Cannot write a checkpoint, will try again", errs)
}

// flushPosition writes a stream's position, unless a handler's transaction has written it.
func (c *committer) flushPosition(ctx context.Context, st *stream) error {
	if !st.Work.position.mu.TryLock() {
		// A handler's transaction is running, which has no time limit. The stream stays dirty.
		return nil
	}
	defer st.Work.position.mu.Unlock()
	if err := c.resolve(ctx, st); err != nil {
		return err
	}
	stored := st.Stored.Load()
	if acked := c.sequencer.AckedOf(st); acked > stored {
		var err error
		if stored, err = c.store(ctx, st, stored, acked); err != nil {
			return err
		}
	}
	c.sequencer.Clean(st, stored)
	return nil
}

// commitAck stores the position of a stream if it has acked events since the last write.
func (c *committer) commitAck(st *stream) error {
	if c.broadcast || c.sequencer.AckedOf(st) <= max(st.Stored.Load(), st.Work.position.leftOut) {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.messageCtx, writeTimeout)
	defer cancel()
	return c.flushPosition(ctx, st)
}

// store moves a position forward and returns the stored position. The caller holds the position's
// lock.
func (c *committer) store(ctx context.Context, st *stream, from, to uint64) (position uint64, err error) {
	switch {
	case c.broadcast:
		position = to
	case c.table != nil:
		var was uint64
		position, was, err = c.checkpoint.StorePosition(ctx, c.key.Group, st.ID, c.epoch, to)
		if err == nil && !st.Work.position.fenced {
			err = c.forgetLateSkips(ctx, st, from, was)
		}
	default:
		position, err = to, c.positionStore.Advance(ctx, c.group(), st.ID, c.epoch, from, to)
		st.Work.position.doubt = err != nil
	}
	if err != nil {
		return 0, err
	}
	st.Stored.Store(position)
	if !c.broadcast {
		c.stats.positions.Add(1)
	}
	return position, nil
}

// resolve determines the outcome of a write that failed. The caller holds the position's lock.
func (c *committer) resolve(ctx context.Context, st *stream) error {
	if !st.Work.position.doubt {
		return nil
	}
	return c.fence(ctx, st)
}

// fence prevents all others from moving a position: former owners, and transactions of this owner's
// handlers whose outcome is unknown. The caller holds the position's lock.
func (c *committer) fence(ctx context.Context, st *stream) error {
	position, _, err := c.positionStore.Claim(ctx, c.group(), st.ID, c.epoch)
	if err == nil && !st.Work.position.fenced && c.table != nil {
		err = c.forgetLateSkips(ctx, st, st.Stored.Load(), position)
	}
	if err != nil {
		return err
	}
	if stored := st.Stored.Load(); position < stored {
		return c.wentBack(st, stored, position)
	}
	st.Work.position.doubt, st.Work.position.fenced = false, true
	st.Stored.Store(position)
	return nil
}

// committed returns the stored position after all transactions that handlers may have committed.
func (c *committer) committed(st *stream) (uint64, error) {
	if err := st.Work.position.own(c.messageCtx); err != nil {
		return 0, err
	}
	defer st.Work.position.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.messageCtx, writeTimeout)
	defer cancel()
	err := c.resolve(ctx, st)
	return st.Stored.Load(), err
}

// saveCursor moves the shard's cursor as far as possible: up to where the last trailing read has
// come, and not past an event that is unstored, unless its aggregate is on the behind list.
func (c *committer) saveCursor(ctx context.Context) error {
	p := c.sequencer.Progress()
	var rows []func() error
	for _, st := range p.List {
		rows = append(rows, func() error { return c.list(ctx, st) })
	}
	if err := worst(c.inParallel(rows)); err != nil {
		return err
	}
	// A former owner may rely on entries that it has written, and let its cursor pass their events.
	// So no entry is deleted before this owner has stored the cursor, which fences that of the
	// former owner.
	due := c.due()
	if p.Next != p.Saved || len(p.Unlist) > 0 && !c.saved || !due.IsZero() {
		if err := c.checkpoint.SaveCursor(ctx, c.key, checkpoint.CursorRow{
			Epoch: c.epoch, Cursor: time.UnixMilli(p.Next.At), Reconciled: p.Next.ReconciledAt, Due: due, Reconciling: c.reconciling.Load(),
		}); err != nil {
			return err
		}
		c.sequencer.SaveCursor(p)
		c.saved = true
	}
	rows = nil
	for _, st := range p.Unlist {
		rows = append(rows, func() error { return c.unlist(ctx, st) })
	}
	return worst(c.inParallel(rows))
}

// worst returns one of some errors: an ErrFenced if there is one, otherwise the first.
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

// fenceHandlers fences the transactions of this owner's handlers, so that they cannot move
// positions once the shard is free. A caller that waits for a free shard relies on this, for
// example to clear a read model. The epoch is that of the next owner. If a later owner has claimed
// a position, the transactions are fenced already. [Position] prevents a handler from starting
// another transaction. If fenceHandlers fails, the member adds an unfenced term to the membership.
func (c *committer) fenceHandlers() bool {
	ctx, cancel := context.WithTimeout(c.closing, writeTimeout)
	defer cancel()
	var rows []func() error
	for _, st := range c.sequencer.All() {
		if st.Work.position.isResolved() {
			continue
		}
		rows = append(rows, func() error {
			_, _, err := c.positionStore.Claim(ctx, c.group(), st.ID, c.epoch+1)
			if errors.Is(err, ErrFenced) {
				return nil
			}
			return err
		})
	}
	errs := c.inParallel(rows)
	c.failed("Cannot fence the transactions of handlers: they may still move positions", errs)
	return errors.Join(errs...) == nil
}

// revision returns the revision of the next write to an entry of the behind list. A write that is
// given up and arrives late has an older revision than later writes, so it changes nothing.
func (c *committer) revision() checkpoint.Revision {
	return checkpoint.Revision{Epoch: c.epoch, Number: c.revisions.Add(1)}
}
