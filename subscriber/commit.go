package subscriber

import (
	"context"
	"fmt"
	"sync/atomic"
)

// position is what is stored of a stream. Whoever writes it holds the lock from before the write
// until the result is noted, so the flusher and a handler's own transaction never compete.
type position struct {
	mu     lock
	stored atomic.Uint64 // written under mu
	fenced bool          // nobody but this owner can move it. Under mu
	doubt  bool          // a write of it failed and may have been done all the same. Under mu

	begins   bool        // where the group begins with the aggregate is to be stored. For a worker alone
	handling atomic.Bool // a handler has mu
	batched  atomic.Bool // it is in a transaction for several events
	longest  int         // how many events a transaction may be for, since one for several failed; 0 for any number. Under mu
}

// commit has a handler move a position in a transaction of its own, from before the event with a
// number to where the function to says, which is asked once it is known where the position is.
func (c *committer) commit(
	ctx context.Context, st *stream, number uint64, to func() uint64, run func(context.Context, Advance) error,
) error {
	p := &st.position
	if err := p.mu.Lock(ctx); err != nil {
		return fmt.Errorf("wait for an earlier handler of %s to return from its transaction: %w", st.id, err)
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
			c.fenced(err)
			return err
		}
	}
	from := p.stored.Load()
	if from >= number {
		return nil // it was committed before, by a handler that nacked all the same or by a former owner's
	}
	advance := Advance{Group: c.group(), Aggregate: st.id, Epoch: c.epoch, From: from, To: to()}
	p.doubt = true // also if run panics
	if err := run(ctx, advance); err != nil {
		c.fenced(err)
		return err
	}
	p.doubt = false
	p.stored.Store(advance.To)
	c.stats.positions.Add(1)
	return nil
}

// fenceInTime bounds how long the lock is held for a request that hangs.
func (c *committer) fenceInTime(ctx context.Context, st *stream) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.fence(ctx, st)
}

// own locks the position. It waits for a write of the subscriber, but returns errCommitting while a
// handler commits, since that has no time limit.
func (p *position) own(ctx context.Context) error {
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

// isAtRest reports that no write of the position is under way, as far as known.
func (p *position) isResolved() bool {
	if !p.mu.TryLock() {
		return false
	}
	defer p.mu.Unlock()
	return !p.doubt
}
