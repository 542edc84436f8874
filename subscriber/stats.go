package subscriber

import "sync/atomic"

// Stats counts what a subscriber has done since it was made.
type Stats struct {
	Delivered  uint64 // messages handed out, redeliveries included
	Acked      uint64
	Nacked     uint64
	Duplicates uint64 // events that were seen again and dropped
	Fetched    uint64 // events read by aggregate: gaps in the tail and local commits
	Failures   uint64 // readings of an aggregate that failed and were put off
	Corrupt    uint64 // items of the tail that are no events
	Destroyed  uint64 // events passed over because the key of their aggregate was destroyed
	Truncated  uint64 // events passed over because they were removed from the journal
	Claims     uint64 // positions claimed: read and stamped, one write each
	Positions  uint64 // positions stored
}

type counters struct {
	delivered, acked, nacked, duplicates, fetched, failures, corrupt, destroyed, truncated, claims, positions atomic.Uint64
}

func (c *counters) read() Stats {
	return Stats{
		Delivered: c.delivered.Load(), Acked: c.acked.Load(), Nacked: c.nacked.Load(),
		Duplicates: c.duplicates.Load(), Fetched: c.fetched.Load(), Failures: c.failures.Load(),
		Corrupt: c.corrupt.Load(), Destroyed: c.destroyed.Load(), Truncated: c.truncated.Load(), Claims: c.claims.Load(), Positions: c.positions.Load(),
	}
}
