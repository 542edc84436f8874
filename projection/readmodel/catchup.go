package readmodel

import (
	"context"
	"fmt"
	"time"
)

const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
	// restPerLook is for how many times as long as an exact look took there is no other, as it
	// reads all heads.
	restPerLook = 4
)

// CatchUp waits until a generation lags by no more than [Config].MaxLag and MaxDelay. It looks
// every tenth of the time that it will still take, but not more often than each 100 ms and at least
// each 10 seconds; as long as that is not known, for nothing moves or nobody consumes, the time
// between looks doubles from the one to the other. Looks are those of [Model.Progress] where these
// do not take more than a fifth of the time. In between, those of [Model.Estimate] find out that it
// is near, unless much was written just now. Report, if any, is told what exact looks saw.
//
// Errors: the context's, with an [*BehindError] that says how far it was; [ErrNoGeneration]; those
// of [Model.Progress].
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

// chase is what is known of a generation that catches up.
type chase struct {
	last  Progress  // exactly
	at    time.Time // of the last exact look
	next  time.Time // when another one may be made
	near  bool      // the last estimate said so
	pause time.Duration
}

// chase looks at a generation, and reports whether there is something to report.
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
	c.last, c.at, c.next = p, began, now.Add(restPerLook*now.Sub(began))
	return p, true, nil
}

// rest is the time until the next look.
func (c *chase) rest(now time.Time) time.Duration {
	if c.last.Rate > 0 {
		c.pause = (c.last.Remaining() - now.Sub(c.at)) / 10
	} else {
		c.pause *= 2
	}
	c.pause = min(max(c.pause, shortestPause), longestPause)
	return c.pause
}
