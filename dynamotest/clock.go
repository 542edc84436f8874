package dynamotest

import (
	"sync"
	"time"
)

// Clock is the time of a database. It determines when TTL expires, when index delays end, and when
// the ten minutes of a ClientRequestToken are over. It runs with the time of the machine until it
// is moved or frozen. It is safe for concurrent use.
//
// Items that have expired and changes that have arrived at an index stay so if the clock is moved
// back.
//
// Pass the method Now to programs that need a clock, so that program and database agree.
// [Clock.Skewed] is for a program whose clock is wrong.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration // from the time of the machine
	frozen bool
	at     time.Time // while frozen
}

// Now returns the time of the database.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.frozen {
		return c.at
	}
	return time.Now().Add(c.offset)
}

// Advance moves the clock by d. A negative duration moves it back. The clock may be frozen.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	c.at = c.at.Add(d)
}

// Set moves the clock to a time. The clock may be frozen.
func (c *Clock) Set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = time.Until(to)
	c.at = to
}

// Freeze stops the clock. Advance and Set still move it.
func (c *Clock) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.frozen = c.now(), true
}

// Resume lets a frozen clock run again from its current time.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.offset, c.frozen = time.Until(c.at), false
	}
}

// Skewed returns the clock of a machine that is ahead by some time, or behind if by is negative.
func (c *Clock) Skewed(by time.Duration) func() time.Time {
	return func() time.Time { return c.Now().Add(by) }
}
