package subscriber

import "time"

// MemberName returns the default name of a member.
var MemberName = memberName

// WithCursorInterval returns a config that writes cursors more often.
func WithCursorInterval(c Config, d time.Duration) Config {
	c.cursorInterval = d
	return c
}

// WithMaxUnstored returns a config whose shards have few unstored positions.
func WithMaxUnstored(c Config, n int) Config {
	c.maxUnstored = n
	return c
}

// WithIdleStreams returns a config whose shards remember few idle aggregates.
func WithIdleStreams(c Config, n int) Config {
	c.idleStreams = n
	return c
}

// WithMaxDeferred returns a config whose shards defer few events.
func WithMaxDeferred(c Config, n int) Config {
	c.maxDeferred = n
	return c
}

// WithRescan returns a config that reads the records of deferred events often.
func WithRescan(c Config, d time.Duration) Config {
	c.rescanSoon, c.rescanInterval = d, d
	return c
}
