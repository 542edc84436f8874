package sim

import "github.com/millrace-dev/millrace/test/campaign"

// Kinds of findings.
const (
	// Lost: a committed event that a group never acked.
	Lost campaign.Kind = "lost"
	// Reordered: an event that was delivered before the event before it was acked, or concurrently
	// with it.
	Reordered campaign.Kind = "reordered"
	// Unwanted: an event of a type that the group does not want.
	Unwanted campaign.Kind = "unwanted"
	// Restless: an event that was delivered while the group was paused and idle, or after an event
	// had stopped it.
	Restless campaign.Kind = "restless"
	// Repeated: an event that was delivered although the stored position of the group is beyond it.
	Repeated campaign.Kind = "after_flush_duplicate"
	// Moved: a stored position that moved back or beyond the acked events, or that is wrong at the
	// end.
	Moved campaign.Kind = "position"
	// Passed: an event that was passed over without a record, or delivered although there is one.
	Passed campaign.Kind = "passed"
	// Effect: an effect of a projection that did not happen exactly once, or a process manager with
	// wrong steps, timeouts or command ids.
	Effect campaign.Kind = "effect"
	// Removed: an aggregate that is not truncated or deleted as operators have requested, or a
	// deleted one that can be written to.
	Removed campaign.Kind = "removed"
	// Archived: an archive that lacks acknowledged events, has events that were not written, or
	// cannot be continued.
	Archived campaign.Kind = "archived"
	// Slow: a Close, a start or a takeover that took too long.
	Slow campaign.Kind = "slow"
	// Leak: a goroutine that is left when everything is closed.
	Leak campaign.Kind = "leak"
)
