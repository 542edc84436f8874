package readmodel

import (
	"context"
	"fmt"
	"time"
)

const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
	// restPerCheck limits exact checks, because they read all heads. The pause after a check is
	// this many times the duration of the check.
	restPerCheck = 4
)

// CatchUp waits until a generation lags by no more than [Config].MaxLag and MaxDelay.
//
// CatchUp polls the generation. The pause between polls is a tenth of the remaining time, at least
// 100 ms and at most 10 seconds. While the remaining time is unknown, because the generation makes
// no progress or has no consumers, the pause doubles from poll to poll. A poll is exact, by
// [Model.Progress], if exact polls take no more than a fifth of the time. Otherwise it is an
// estimate, by [Model.Estimate], and an exact poll follows when the estimate says that the
// generation has nearly caught up. An estimate can miss events that were written just now. Report,
// if not nil, receives the results of exact polls.
//
// Errors: the context's, with a [*BehindError] that says how far the generation was;
// [ErrNoGeneration]; those of [Model.Progress].
func (m *Model) CatchUp(ctx context.Context, g Generation, report func(Progress)) error {
	c := chase{pause: shortestPause / 2}
	for {
		s, err := m.current(ctx)
		if err == nil && !m.isLive(s, g) {
			err = fmt.Errorf("%w: %s", ErrNoGeneration, g)
		}
		if err != nil {
			return err
		}
		p, seen, err := m.chase(ctx, g, &c)
		if err != nil {
			return err
		}
		if seen && report != nil {
			report(p)
		}
		if seen && m.caughtUp(p) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("catch up: %w: %w", ctx.Err(), &BehindError{Generation: m.generation(s, g.Number), Progress: c.last, MaxLag: m.config.MaxLag, MaxDelay: m.config.MaxDelay})
		case <-time.After(c.rest(time.Now())):
		}
	}
}

// chase holds the results of the polls of a generation that catches up.
type chase struct {
	last  Progress  // the last exact progress
	at    time.Time // time of the last exact poll
	next  time.Time // when an exact poll is allowed again
	near  bool      // the last estimate was nearly caught up
	pause time.Duration
}

// chase polls a generation, and reports whether the result is exact.
func (m *Model) chase(ctx context.Context, g Generation, c *chase) (p Progress, seen bool, err error) {
	if time.Now().Before(c.next) {
		if p, _, err = m.estimate(ctx, g); err != nil {
			return p, false, fmt.Errorf("progress of generation %s: %w", g, err)
		}
		wasNear := c.near
		c.near = p.Begun && !p.AtLeast && p.Left <= m.config.MaxLag
		if !c.near || wasNear {
			return p, false, nil
		}
	}
	began := time.Now()
	if p, err = m.Progress(ctx, g); err != nil {
		return p, false, err
	}
	if c.last.Begun && c.last.Left > p.Left {
		p.Rate = float64(c.last.Left-p.Left) / began.Sub(c.at).Seconds()
	}
	now := time.Now()
	c.last, c.at, c.next = p, began, now.Add(restPerCheck*now.Sub(began))
	return p, true, nil
}

// rest returns the pause until the next poll.
func (c *chase) rest(now time.Time) time.Duration {
	if c.last.Rate > 0 {
		c.pause = (c.last.Remaining() - now.Sub(c.at)) / 10
	} else {
		c.pause *= 2
	}
	c.pause = min(max(c.pause, shortestPause), longestPause)
	return c.pause
}
