package sim

import (
	"fmt"
	"time"
)

// Kind is what a finding is about.
type Kind string

// What must not be.
const (
	// Lost: a committed event that a group never acked.
	Lost Kind = "lost"
	// Reordered: an event that was handed out before the one before it was acked, or beside it.
	Reordered Kind = "reordered"
	// Unwanted: an event of a type that the group did not ask for.
	Unwanted Kind = "unwanted"
	// Restless: an event that was handed out while the group was paused and had become idle, or
	// after an event had stopped it.
	Restless Kind = "restless"
	// Repeated: an event that was handed out although the group's position was stored beyond it.
	Repeated Kind = "after_flush_duplicate"
	// Moved: a stored position that went back, beyond what was acked, or that is not where it
	// should be in the end.
	Moved Kind = "position"
	// Passed: an event that was passed over and left no record, or was handed out though there is
	// one.
	Passed Kind = "passed"
	// Effect: an effect of a projection that did not happen exactly once, or a process manager that
	// did not do what its events and timeouts ask for, or under ids that are not theirs.
	Effect Kind = "effect"
	// Removed: an aggregate that is not truncated or deleted as operators have asked for, or one
	// that is deleted and can be written to.
	Removed Kind = "removed"
	// Archived: an archive that lacks what was acknowledged, has what was not written, or cannot be
	// gone on with.
	Archived Kind = "archived"
	// Slow: a Close, a start or a takeover that took longer than it may.
	Slow Kind = "slow"
	// Leak: a goroutine that is left when everything is closed.
	Leak Kind = "leak"
)

// Finding is something that must not be.
type Finding struct {
	Kind Kind
	At   time.Duration // since the world began
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("%v %s: %s", f.At, f.Kind, f.Text) }

// Report is what came of a world.
type Report struct {
	Deliveries int // messages handed out
	Events     int // committed
	Findings   []Finding
	// Virtual is how long the world lasted by its own clock.
	Virtual time.Duration
	// Seen counts what happened, so that a run in which something never did can be told.
	Seen map[string]int
	// Plan is how the world was set up.
	Plan string
}
