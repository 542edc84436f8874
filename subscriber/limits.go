package subscriber

import "time"

// limits bounds what a shard keeps in memory and how often it does some of its work. Applications
// need no other values, so they are no fields of [Config]. Tests change them.
type limits struct {
	// idleStreams is the maximum number of idle aggregates that each shard remembers. The next
	// event of a forgotten aggregate costs a read unit.
	idleStreams int
	// maxUnstored is the maximum number of aggregates of a shard whose position is not stored yet.
	// When it is reached, no event is delivered until some positions are stored.
	maxUnstored int
	// maxUnfinished is the maximum number of aggregates of a shard with unhandled events. When it
	// is reached, a reconciliation waits until some are handled. Parked ones do not count.
	maxUnfinished int
	// maxDeferred is the maximum number of deferred events of a shard that are held in memory.
	maxDeferred int
	// rescanSoon is the time after a takeover of a shard until its records of deferred events are
	// read again, because a former owner may write a record late. rescanInterval is the time
	// between later scans.
	rescanSoon, rescanInterval time.Duration
	// cursorInterval is the time between two writes of a cursor. It is longer than that of
	// positions, because a cursor only saves some reading after a restart.
	cursorInterval time.Duration
}

func defaultLimits() limits {
	return limits{
		idleStreams: 10_000, maxUnstored: 10_000, maxUnfinished: 10_000, maxDeferred: 10_000,
		rescanSoon: time.Minute, rescanInterval: 10 * time.Minute, cursorInterval: 5 * time.Second,
	}
}
