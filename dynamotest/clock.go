package dynamotest

import (
	"sync"
	"time"
)

// Clock is the time of a database: of TTL, of index delays, of the ten minutes for which a
// ClientRequestToken is remembered. It runs with the time of the machine until it is moved or
// frozen. It is safe for concurrent use.
//
// What has expired, or has arrived at an index, stays so when the clock is moved back.
//
// Its Now method fits wherever a program takes a clock, so that program and database agree;
// [Clock.Skewed] is for a program whose clock is wrong.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration // from the time of the machine
	frozen bool
	at     time.Time // while frozen
}

// Now is the database's time.
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

// Advance moves the clock, whether it runs or is frozen. A negative duration moves it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	c.at = c.at.Add(d)
}

// Set moves the clock to a time.
func (c *Clock) Set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = time.Until(to)
	c.at = to
}

// Freeze stops the clock. It still moves with Advance and Set.
func (c *Clock) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.frozen = c.now(), true
}

// Resume lets a frozen clock run on from where it stands.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.offset, c.frozen = time.Until(c.at), false
	}
}

// Skewed is the clock of a machine that is ahead by some time, or behind if that is negative.
func (c *Clock) Skewed(by time.Duration) func() time.Time {
	return func() time.Time { return c.Now().Add(by) }
}
