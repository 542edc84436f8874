package subscriber

import (
	"sync/atomic"
	"time"
)

// Stats counts what a subscriber has done since it was made.
type Stats struct {
	Delivered  uint64 // messages handed out, redeliveries included
	Acked      uint64
	Nacked     uint64
	Expired    uint64 // messages that were not answered within AckDeadline
	Filtered   uint64 // events passed over because their type was not asked for
	Duplicates uint64 // events that were seen again and dropped
	Fetched    uint64 // events read by aggregate: gaps in the tail and local commits
	Failures   uint64 // readings of an aggregate that failed and were put off
	Corrupt    uint64 // items of the tail that are no events, and heads that cannot be read
	Destroyed  uint64 // events passed over because the key of their aggregate was destroyed
	Truncated  uint64 // events passed over because they were removed from the journal
	Parked     uint64 // aggregates parked
	Poisoned   uint64 // events that went to the poison queue
	Skipped    uint64 // events that were skipped with a record, deferred ones that were given up included
	Deferred   uint64 // events that were deferred
	Retried    uint64 // deferred events that were acked
	Stopped    uint64 // times that the group was stopped by an event of this subscriber's
	Late       uint64 // events that a trailing read found, and the live read had missed
	Reconciled uint64 // events that only a reconciliation found
	Beyond     uint64 // sightings of aggregates whose position is beyond their last event, as after a restore of the journal
	Claims     uint64 // positions read when an aggregate had its first event in a term: a read unit, or a write unit where they are stamped
	Positions  uint64 // positions stored

	// Lateness is how long after its time, at least, an event showed in the tail; the most so far.
	// It is made of the index's delay, the duration of commits, and clocks of writers that are
	// behind.
	Lateness time.Duration
	// Ahead is how far ahead of this process's clock an event was dated; the most so far.
	Ahead time.Duration
}

type counters struct {
	delivered, acked, nacked, expired, filtered, duplicates, fetched, failures, corrupt, destroyed, truncated, parked, poisoned,
	skipped, deferred, retried, stopped, late, reconciled, beyond, claims, positions atomic.Uint64
	skew skew
}

func (c *counters) read() Stats {
	lateness, ahead := c.skew.read()
	return Stats{
		Delivered: c.delivered.Load(), Acked: c.acked.Load(), Nacked: c.nacked.Load(), Expired: c.expired.Load(),
		Filtered: c.filtered.Load(), Duplicates: c.duplicates.Load(), Fetched: c.fetched.Load(), Failures: c.failures.Load(),
		Corrupt: c.corrupt.Load(), Destroyed: c.destroyed.Load(), Truncated: c.truncated.Load(),
		Parked: c.parked.Load(), Poisoned: c.poisoned.Load(), Skipped: c.skipped.Load(), Deferred: c.deferred.Load(), Retried: c.retried.Load(), Stopped: c.stopped.Load(), Late: c.late.Load(), Reconciled: c.reconciled.Load(),
		Beyond: c.beyond.Load(), Claims: c.claims.Load(), Positions: c.positions.Load(),
		Lateness: lateness, Ahead: ahead,
	}
}
