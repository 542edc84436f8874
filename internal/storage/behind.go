package storage

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Behind is an entry of the behind list: an aggregate that the cursor has passed although it has
// unhandled events, or that is parked.
type Behind struct {
	Aggregate aggregate.ID
	// Head is the highest event number that was known when the entry was written.
	Head uint64
	// Parked is the failure because of which the aggregate is parked. It is nil if it is not
	// parked.
	Parked *Failure
	// Failure is the last failed attempt that was known when the entry was written. It is nil for
	// an aggregate that is parked or had not failed, and in entries of earlier versions.
	Failure *Failure
	// Epoch is the epoch of the owner that wrote the entry.
	Epoch uint64
}

// Failure is a failed attempt at an event.
type Failure struct {
	Number uint64 // of the event
	At     time.Time
	Reason string
	// Due is the time of the next attempt. It is zero if it is not known.
	Due time.Time
	// Attempts is the number of failed attempts at the event by all owners, as far as they have
	// stored it. It is 0 in entries of earlier versions.
	Attempts int
	// Resumed is how often the group was resumed when the attempts were counted.
	Resumed uint64
	// Begun says that this was stored before the last attempt, and that its result is not known.
	Begun bool
}

// Waits reports whether the next attempt is due after a time. A failure that is later than this
// time has its times from a wrong clock, so they do not count.
func (f *Failure) Waits(now time.Time) bool {
	return f != nil && f.Due.After(now) && !f.At.After(now.Add(ClocksDiffer))
}

// ClocksDiffer is the largest difference between two clocks after correction.
const ClocksDiffer = 2 * time.Second

// Reconciling is the place at which a reconciliation was interrupted.
type Reconciling struct {
	Began time.Time `json:"began"`
	// Recent reports that it compares what was written lately, and has come to the cursor At.
	// Otherwise it compares all aggregates, and After is the value of the last compared id.
	Recent bool   `json:"recent,omitempty"`
	At     Cursor `json:"at,omitzero"`
	After  string `json:"after,omitempty"`
}
