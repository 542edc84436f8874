package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/journal"
)

// resolveFor is how long a commit whose reply was lost is looked for. DynamoDB ends a transaction within
// seconds.
const resolveFor = 5 * time.Second

// commit is what one transaction appends to a stream: the next runs of some batches.
type commit struct {
	batches  []*batch
	expected *uint64
}

// events are those of all runs. The slice is not to be changed.
func (c *commit) events() []journal.Event {
	if len(c.batches) == 1 {
		r := c.batches[0].runs[c.batches[0].next]
		return c.batches[0].events[r.from:r.to]
	}
	events := make([]journal.Event, 0, journal.MaxEvents)
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
		p.settle(s, c, err)
	}
}

// take makes a commit of what waits at the head of the queue, one run of each batch. It returns nil when
// nothing waits.
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
		if len(c.batches) > 0 && (b.expected != nil || !r.fits(events, bytes)) {
			break
		}
		c.batches = append(c.batches, b)
		b.inFlight = true
		events, bytes = events+r.len(), bytes+r.bytes
		if c.expected != nil {
			break
		}
	}
	return c
}

// settle tells the batches of a commit how it ended.
func (p *Publisher) settle(s *stream, c *commit, err error) {
	abandoned := 0
	p.mu.Lock()
	for _, b := range c.batches {
		b.inFlight = false
		if b.abandoned {
			abandoned += b.runs[b.next].len()
		}
		if err == nil {
			b.written = b.runs[b.next].to
			b.next++
			if b.next < len(b.runs) && !b.abandoned {
				continue
			}
		}
		b.finish(err)
	}
	s.clean()
	p.mu.Unlock()

	if abandoned == 0 {
		return
	}
	fields := watermill.LogFields{"aggregate": s.id.String(), "messages": abandoned}
	if err != nil {
		p.logger.Error("Messages whose context had ended were not appended", err, fields)
		return
	}
	p.logger.Info("Messages whose context had ended were appended", fields)
}

// commit writes one transaction, again and again while others are faster or DynamoDB throttles: neither has
// written anything.
func (p *Publisher) commit(s *stream, c *commit) error {
	ctx, cancel := context.WithTimeoutCause(p.ctx, p.config.CommitTimeout,
		fmt.Errorf("given up after %s (Config.CommitTimeout)", p.config.CommitTimeout))
	defer cancel()
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(250*time.Millisecond),
		backoff.WithMaxElapsedTime(0), // ctx ends it
	)
	for {
		err := p.attempt(ctx, s, c)
		if err == nil || errors.Is(err, journal.ErrOutcomeUnknown) {
			return err
		}
		again := errors.Is(err, journal.ErrThrottled) || errors.Is(err, journal.ErrConflict) && c.expected == nil
		if again && sleep(ctx, wait.NextBackOff()) {
			if !p.dropAbandoned(s, c) {
				return nil
			}
			p.logger.Debug("Commit is repeated", watermill.LogFields{"aggregate": s.id.String(), "reason": err.Error()})
			continue
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w, nothing written: %w", context.Cause(ctx), err)
		}
		return err
	}
}

func (p *Publisher) attempt(ctx context.Context, s *stream, c *commit) error {
	version, err := p.version(ctx, s, c)
	if err != nil {
		return err
	}
	events := c.events()
	receipt, err := p.config.Journal.Append(ctx, journal.Commit{Aggregate: s.id, Expected: version, Events: events})
	var conflict *journal.ConflictError
	var unknown *journal.OutcomeUnknownError
	switch {
	case err == nil:
		s.remember(receipt.Version)
		p.logger.Trace("Messages appended", watermill.LogFields{
			"aggregate": s.id.String(), "version": receipt.Version, "messages": len(events), "commit_id": receipt.CommitID,
		})
		return nil
	case errors.As(err, &conflict) && conflict.Actual > version:
		s.remember(conflict.Actual) // the refusal tells what a read of the head would
	default:
		s.forget()
	}
	if errors.As(err, &unknown) {
		return p.resolve(s, unknown)
	}
	return err
}

// version is what the head must have for the commit.
func (p *Publisher) version(ctx context.Context, s *stream, c *commit) (uint64, error) {
	if c.expected != nil {
		return *c.expected, nil
	}
	if s.known {
		return s.version, nil
	}
	version, err := p.config.Journal.Version(ctx, s.id)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return 0, err
	}
	s.remember(version)
	return version, nil
}

// resolve finds out what has become of a commit whose reply was lost: nothing is wrong with one that is
// there, and one whose place others have taken is a conflict. As long as the place is free the commit may
// still come, and the outcome stays unknown.
func (p *Publisher) resolve(s *stream, unknown *journal.OutcomeUnknownError) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.resolveFor)
	defer cancel()
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(0),
	)
	raw := p.config.Journal.Raw() // only ids are looked at
	for {
		if version, err := raw.Version(ctx, s.id); err == nil && version >= unknown.First {
			for first, err := range raw.Events(ctx, s.id, unknown.First, unknown.First) {
				switch {
				case err != nil:
				case first.CommitID == unknown.CommitID:
					return nil
				default:
					s.remember(version)
					return &journal.ConflictError{ID: s.id, Expected: unknown.First - 1, Actual: version}
				}
			}
		}
		if !sleep(ctx, wait.NextBackOff()) {
			return unknown
		}
	}
}

// dropAbandoned takes batches that nobody waits for out of a commit that has to be repeated. It tells
// whether anything is left.
func (p *Publisher) dropAbandoned(s *stream, c *commit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.batches = slices.DeleteFunc(c.batches, func(b *batch) bool {
		if b.abandoned {
			b.finish(context.Canceled)
		}
		return b.abandoned
	})
	s.clean()
	return len(c.batches) > 0
}

// sleep waits; false means that the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
