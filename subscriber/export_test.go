package subscriber

import "time"

// MemberName returns the default name of a member.
var MemberName = memberName

// Limit changes a limit of a Subscriber that has no subscriptions yet.
type Limit func(*limits)

// Limit changes limits.
func (sub *Subscriber) Limit(changes ...Limit) {
	for _, change := range changes {
		change(&sub.limits)
	}
}

// CursorInterval changes how often cursors are written.
func CursorInterval(d time.Duration) Limit { return func(l *limits) { l.cursorInterval = d } }

// MaxUnstored changes how many unstored positions a shard has.
func MaxUnstored(n int) Limit { return func(l *limits) { l.maxUnstored = n } }

// IdleStreams changes how many idle aggregates a shard remembers.
func IdleStreams(n int) Limit { return func(l *limits) { l.idleStreams = n } }

// MaxDeferred changes how many events a shard defers.
func MaxDeferred(n int) Limit { return func(l *limits) { l.maxDeferred = n } }

// Rescan changes how often the records of deferred events are read.
func Rescan(d time.Duration) Limit {
	return func(l *limits) { l.rescanSoon, l.rescanInterval = d, d }
}
