package publisher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// commit holds what one transaction appends to a stream: the next runs of some batches.
type commit struct {
	batches  []*batch
	expected *uint64
	proven   bool     // whether the version of the last attempt was proven, see storage.Commit
	open     attempts // attempts whose outcome is unknown
}

// events returns the events of all runs. Callers must not change the slice.
func (c *commit) events() []storage.Event {
	if len(c.batches) == 1 {
		r := c.batches[0].runs[c.batches[0].next]
		return c.batches[0].events[r.from:r.to]
	}
	events := make([]storage.Event, 0, storage.MaxEvents)
	for _, b := range c.batches {
		r := b.runs[b.next]
		events = append(events, b.events[r.from:r.to]...)
	}
	return events
}

func (p *Publisher) enqueue(b *batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams.acquire(b.id)
	s.queue = append(s.queue, b)
	if !s.draining {
		s.draining = true
		p.drains.Add(1)
		go p.drain(s)
	}
}

// drain writes a stream's queue until it is empty.
func (p *Publisher) drain(s *stream) {
	defer p.drains.Done()
	for c := p.take(s); c != nil; c = p.take(s) {
		err := p.commit(s, c)
		p.report(s, c, err)
	}
}

// take returns a commit of the first batches of the queue, with one run of each batch. It returns
// nil if the queue is empty.
func (p *Publisher) take(s *stream) *commit {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		for _, b := range s.queue {
			b.finish(ErrPublisherClosed)
		}
		s.clean()
	}
	if len(s.queue) == 0 {
		s.draining = false
		p.streams.release(s)
		return nil
	}
	c := &commit{expected: s.queue[0].expected}
	events, bytes := 0, 0
	for _, b := range s.queue {
		r := b.runs[b.next]
		if len(c.batches) > 0 && (b.expected != nil || !r.fits(events, bytes) || bytes+r.bytes > p.journal.GroupBytes) {
			break
		}
		c.batches = append(c.batches, b)
		events, bytes = events+r.len(), bytes+r.bytes
		if c.expected != nil {
			break
		}
	}
	return c
}

// report records the result of a commit in its batches.
func (p *Publisher) report(s *stream, c *commit, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range c.batches {
		if err == nil {
			b.written = b.runs[b.next].to
			b.next++
			if b.next < len(b.runs) {
				continue
			}
		}
		b.finish(err)
	}
	s.clean()
}

// commit writes one transaction. It repeats it after conflicts, while DynamoDB throttles or cannot
// be reached, and after lost replies.
func (p *Publisher) commit(s *stream, c *commit) error {
	ctx, cancel := context.WithTimeoutCause(p.ctx, p.config.CommitTimeout,
		fmt.Errorf("given up after %s (Config.CommitTimeout)", p.config.CommitTimeout))
	defer cancel()
	wait := retry.Pauses(time.Millisecond, 250*time.Millisecond, 0)
	for {
		err := p.attempt(ctx, s, c)
		if err == nil {
			return nil
		}
		if c.mayRepeat(err) && retry.Sleep(ctx, wait.NextBackOff()) {
			p.logger.Debug("Commit is repeated", watermill.LogFields{"aggregate": printable.Text(s.id.String()), "reason": err.Error()})
			continue
		}
		if len(c.open) > 0 {
			s.forget()
			if err = p.lookFor(c, err); err == nil || errors.Is(err, journal.ErrOutcomeUnknown) {
				return err
			}
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w, nothing written: %w", context.Cause(ctx), err)
		}
		return err
	}
}

// mayRepeat reports whether another attempt could succeed.
func (c *commit) mayRepeat(err error) bool {
	if errors.Is(err, errRemoved) {
		return false
	}
	return dynamo.IsTransient(err) || errors.Is(err, journal.ErrOutcomeUnknown) ||
		errors.Is(err, journal.ErrConflict) && c.expected == nil
}

func (p *Publisher) attempt(ctx context.Context, s *stream, c *commit) error {
	version, proven, err := p.version(ctx, s, c)
	if err != nil {
		return err
	}
	events := c.events()
	c.proven = proven
	receipt, err := p.append(ctx, storage.Commit{Aggregate: s.id, Expected: version, Proven: proven, Events: events})
	var conflict *journal.ConflictError
	var unknown *journal.OutcomeUnknownError
	switch {
	case err == nil:
		s.remember(receipt.Version)
		p.logger.Trace("Messages appended", watermill.LogFields{
			"aggregate": printable.Text(s.id.String()), "version": receipt.Version, "messages": len(events), "commit_id": receipt.CommitID,
		})
		return nil
	case errors.As(err, &unknown):
		c.open = append(c.open, unknown)
		return err
	case errors.As(err, &conflict) && (conflict.Actual > version || conflict.Actual == 0):
		if s.forget(); conflict.Actual > 0 {
			s.remember(conflict.Actual) // saves a read of the head
		}
		if len(c.open) == 0 {
			return err
		}
		return p.resolveOpen(ctx, c, conflict)
	default:
		s.forget()
		return err
	}
}

// version returns the version that the commit requires. proven is the Proven of storage.Commit.
func (p *Publisher) version(ctx context.Context, s *stream, c *commit) (version uint64, proven bool, err error) {
	if len(c.open) > 0 {
		return c.open.version(), c.proven, nil
	}
	if c.expected != nil {
		return *c.expected, *c.expected == 0 || s.known && s.version == *c.expected, nil
	}
	if s.known {
		return s.version, true, nil
	}
	version, err = p.journal.Version(ctx, s.id)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return 0, false, err
	}
	s.remember(version)
	return version, true, nil
}
