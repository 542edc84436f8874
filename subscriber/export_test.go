package subscriber

import "time"

// MemberName is the name of a member by default.
var MemberName = memberName

// WithCursorInterval is a config that writes cursors more often.
func WithCursorInterval(c Config, d time.Duration) Config {
	c.cursorInterval = d
	return c
}

// WithMaxUnstored is a config whose shards have few positions that are not stored.
func WithMaxUnstored(c Config, n int) Config {
	c.maxUnstored = n
	return c
}

// WithIdleStreams is a config whose shards remember few aggregates that have nothing to do.
func WithIdleStreams(c Config, n int) Config {
	c.idleStreams = n
	return c
}

// WithMaxFailing is a config whose shards read on while few aggregates fail.
func WithMaxFailing(c Config, n int) Config {
	c.maxFailing = n
	return c
}

// WithMaxDeferred is a config whose shards defer few events.
func WithMaxDeferred(c Config, n int) Config {
	c.maxDeferred = n
	return c
}

// WithRescan is a config that reads the records of deferred events often.
func WithRescan(c Config, d time.Duration) Config {
	c.rescanSoon, c.rescanInterval = d, d
	return c
}
