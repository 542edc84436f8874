package subscriber

import "time"

// Start says where a group begins that is new or was reset. See [Beginning], [Now] and [At].
type Start struct {
	now bool
	at  time.Time
}

// Beginning starts a group with the first event of every aggregate.
func Beginning() Start { return Start{} }

// Now starts a group with the events that occur after it is created by the first call of Subscribe,
// or is reset.
//
// The group begins 2 seconds earlier, because the clocks of two processes may differ by that much
// even after correction (journal.Config.Now). It begins earlier still if the first requests to
// DynamoDB take longer. So it leaves out no event that occurs later, such as the reply to a
// request. But it may receive some events from those seconds.
//
// The time of an event is its occurred_at. If older events are imported into an aggregate later,
// they count as earlier, so the group leaves them out. If the dates within an aggregate do not
// rise, because the clock of a writer was wrong, the group can begin with an earlier or a later
// event of this aggregate. Use [Beginning] if such events matter.
func Now() Start { return Start{now: true} }

// At starts a group with the events whose occurred_at is t or later, in milliseconds or the unit of
// the journal. Imported events with earlier times are left out, and wrong clocks move the beginning
// within an aggregate, as with [Now].
func At(t time.Time) Start { return Start{at: t.Truncate(time.Millisecond)} }

// clocksDiffer is the largest difference between two clocks. At first the error of each clock is
// known only to within a second.
const clocksDiffer = 2 * time.Second

// Time returns the time before which events are left out by a group that begins at now. It is zero
// for [Beginning].
func (s Start) Time(now time.Time) time.Time {
	if s.now {
		return now.Add(-clocksDiffer).Truncate(time.Millisecond)
	}
	return s.at
}
