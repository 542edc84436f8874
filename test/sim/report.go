package sim

import (
	"fmt"
	"time"
)

// Kind says which rule a finding breaks.
type Kind string

// Kinds of findings.
const (
	// Lost: a committed event that a group never acked.
	Lost Kind = "lost"
	// Reordered: an event that was delivered before the event before it was acked, or concurrently
	// with it.
	Reordered Kind = "reordered"
	// Unwanted: an event of a type that the group does not want.
	Unwanted Kind = "unwanted"
	// Restless: an event that was delivered while the group was paused and idle, or after an event
	// had stopped it.
	Restless Kind = "restless"
	// Repeated: an event that was delivered although the stored position of the group is beyond it.
	Repeated Kind = "after_flush_duplicate"
	// Moved: a stored position that moved back or beyond the acked events, or that is wrong at the
	// end.
	Moved Kind = "position"
	// Passed: an event that was passed over without a record, or delivered although there is one.
	Passed Kind = "passed"
	// Effect: an effect of a projection that did not happen exactly once, or a process manager with
	// wrong steps, timeouts or command ids.
	Effect Kind = "effect"
	// Removed: an aggregate that is not truncated or deleted as operators have requested, or a
	// deleted one that can be written to.
	Removed Kind = "removed"
	// Archived: an archive that lacks acknowledged events, has events that were not written, or
	// cannot be continued.
	Archived Kind = "archived"
	// Slow: a Close, a start or a takeover that took too long.
	Slow Kind = "slow"
	// Leak: a goroutine that is left when everything is closed.
	Leak Kind = "leak"
)

// Finding is a violation of a rule.
type Finding struct {
	Kind Kind
	At   time.Duration // since the start of the world
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("%v %s: %s", f.At, f.Kind, f.Text) }

// Report holds the results of a world.
type Report struct {
	Deliveries int // delivered messages
	Events     int // committed events
	Findings   []Finding
	// Virtual is the duration of the world by its own clock.
	Virtual time.Duration
	// Seen counts events of the world, so that a reader notices when something never happened.
	Seen map[string]int
	// Plan describes the settings of the world.
	Plan string
}
