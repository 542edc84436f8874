package subscriber

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// streamPosition is the stored position of a stream. A writer holds the lock from before the write
// until its result is known. So the committer and a handler's transaction never write at the same
// time.
type streamPosition struct {
	mu lock
	// fenced reports that only this owner can move the position. The lock guards it.
	fenced bool
	// doubt reports that a write failed whose outcome is unknown. The lock guards it.
	doubt bool

	// begins reports that the baseline of the aggregate must be stored. Only the worker of the
	// stream uses it.
	begins bool
	// leftOut is the number of events that LatestOnly leaves out. They count as acked, but the
	// position is stored only with a later event. Only the worker of the stream uses it.
	leftOut uint64
	// handling reports that a handler holds the lock.
	handling atomic.Bool
	// batched reports that a transaction for several events is running.
	batched atomic.Bool
	// longest is the maximum number of events in a transaction, after a transaction for several
	// events has failed. 0 means no maximum. The lock guards it.
	longest int
}

// commit lets a handler move a position in its own transaction. The position must be before the
// event number. It moves to the event that the function to returns. commit calls to when it knows
// the current position.
func (c *committer) commit(
	ctx context.Context, st *stream, number uint64, to func() uint64, run func(context.Context, Advance) error,
) error {
	p := &st.Work.position
	if err := p.mu.Lock(ctx); err != nil {
		return fmt.Errorf("wait for an earlier handler of %s to return from its transaction: %w", st.ID, err)
	}
	defer p.mu.Unlock()
	p.handling.Store(true)
	defer p.handling.Store(false)
	if c.isAbandoned() {
		return fmt.Errorf("%w: the message was not answered before the shard was given up", ErrFenced)
	}
	c.commits.Store(true)
	if p.doubt || !p.fenced {
		if err := c.fenceInTime(ctx, st); err != nil {
			c.loseIfFenced(err)
			return err
		}
	}
	from := st.Stored.Load()
	if from >= number {
		// The event was committed before, by a handler that then nacked the message, or by a
		// handler of a former owner.
		return nil
	}
	advance := Advance{Group: c.group(), Aggregate: st.ID, Epoch: c.epoch, From: from, To: to()}
	p.doubt = true // also holds if run panics
	if err := run(ctx, advance); err != nil {
		c.loseIfFenced(err)
		return err
	}
	p.doubt = false
	st.Stored.Store(advance.To)
	c.stats.positions.Add(1)
	return nil
}

// fenceInTime limits the time for which a request that hangs holds the lock.
func (c *committer) fenceInTime(ctx context.Context, st *stream) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.fence(ctx, st)
}

// own locks the position. It waits for a write of the subscriber. It returns errCommitting while a
// handler's transaction runs, because that has no time limit.
func (p *streamPosition) own(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if p.handling.Load() {
		return errCommitting
	}
	err := p.mu.Lock(ctx)
	if err != nil && p.handling.Load() {
		return errCommitting
	}
	return err
}

// isResolved reports that no write of the position is in progress, and that the outcome of the last
// one is known.
func (p *streamPosition) isResolved() bool {
	if !p.mu.TryLock() {
		return false
	}
	defer p.mu.Unlock()
	return !p.doubt
}

// list adds a stream to the behind list.
func (c *committer) list(ctx context.Context, st *stream) error {
	st.Work.listing.Lock()
	defer st.Work.listing.Unlock()
	entry, needed := c.sequencer.BeginListing(st)
	if !needed {
		return nil
	}
	if err := c.checkpoint.ListBehind(ctx, c.key.Group, c.revision(), entry); err != nil {
		return err
	}
	c.sequencer.Explain(st, entry.Failure)
	c.sequencer.SetListed(st, true)
	return nil
}

// unlist deletes the entry of a stream. The stream counts as not listed from before the write,
// because the outcome of the write may be unknown.
func (c *committer) unlist(ctx context.Context, st *stream) error {
	st.Work.listing.Lock()
	defer st.Work.listing.Unlock()
	if !c.sequencer.BeginUnlisting(st) {
		return nil // it has new events
	}
	if err := c.checkpoint.UnlistBehind(ctx, c.key.Group, st.ID, c.revision()); err != nil {
		return err
	}
	c.sequencer.Explain(st, nil)
	c.sequencer.SetListed(st, false)
	return nil
}

// park adds a stream to the behind list as parked, and stops its delivery.
func (c *committer) park(ctx context.Context, st *stream, why *checkpoint.Failure) error {
	st.Work.listing.Lock()
	defer st.Work.listing.Unlock()
	head := c.sequencer.ExpectEntry(st)
	b := checkpoint.Behind{Aggregate: st.ID, Head: head, Parked: why}
	if err := c.checkpoint.ListBehind(ctx, c.key.Group, c.revision(), b); err != nil {
		return err
	}
	c.sequencer.Park(st)
	return nil
}
