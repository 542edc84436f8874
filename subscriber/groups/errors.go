package groups

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Errors of this package, for errors.Is. [*ActiveError], [*NotNextError], [*ExternalPositionsError] and
// [*TrimKeepError] are for errors.As.
// Errors of the journal, such as journal.ErrThrottled and journal.ErrTableMissing, come too.
//
// An edit of an aggregate returns subscriber.ErrFenced if the operator lost the shard again and
// again before the edit ended, as happens if its heartbeats fail for the 10 seconds of its lease.
// The text names the error of the last heartbeat then. Parts of the edit may have been done. Repeat
// it; but repeat [Groups.ResetAggregate] only if [Groups.Applied] shows that the position was not
// put, or events come once more.
var (
	// ErrNoGroup: there is no group of that name on that topic. A group comes into being when it
	// first subscribes.
	ErrNoGroup = checkpoint.ErrNoGroup
	// ErrNotParked: the group goes on with the aggregate, or has nothing to do there.
	ErrNotParked = errors.New("aggregate is not parked")
	// ErrNotSkipped: there is no record that the group skipped the event. Nothing was changed.
	ErrNotSkipped = errors.New("event was not skipped")
	// ErrNoSuchEvent: the aggregate has no event of that number. Nothing was changed.
	ErrNoSuchEvent = errors.New("aggregate has no such event")
	// ErrNotApplied: the group had not applied the event when the time was over. The text says how
	// far it was.
	ErrNotApplied = errors.New("event is not applied yet")
	// ErrExternalPositions: members keep the group's positions in a store of their own
	// (subscriber.Config.Positions), as those of SQL read models do. Nothing was changed. Reading
	// needs [WithPositions]; Skip and ResetAggregate cannot be done here, see docs/guides/sql.md for how
	// they are done there.
	ErrExternalPositions = errors.New("the group's positions are not in the checkpoint table")
	// ErrNoGroups: the topic has no consumer group, so nothing says that its events were handled.
	// Nothing was removed. TrimOptions.WithoutGroups trims it all the same.
	ErrNoGroups = errors.New("the topic has no consumer group, so nothing says that its events were handled")
	// ErrLeftovers: the group was reset and works, but rows from before the reset are left in the
	// table. Nothing reads them; [Groups.CleanUp] deletes them.
	ErrLeftovers = errors.New("rows from before the reset are left")
	// ErrCorrupt: a row of the checkpoint table is none that was written by this module. The text
	// names it.
	ErrCorrupt = checkpoint.ErrCorrupt
)

// ActiveError reports that members are at work, or were a short time ago. Nothing was changed.
type ActiveError struct {
	Members []uint64 // who have not left
	Shards  []int    // that they own; of WaitIdle also those that were taken from them while they were at work
}

func (e *ActiveError) Error() string {
	return fmt.Sprintf("consumer group is active: members %d have not left, and own shards %d; "+
		"close them, and where they crashed wait for the time of a lease while another member runs", e.Members, e.Shards)
}

// NotNextError reports that an event is not the one that the aggregate waits for. Nothing was
// changed.
type NotNextError struct {
	Aggregate aggregate.ID
	Number    uint64 // of the event that was named
	Next      uint64 // of the event that the group has not handled yet
}

func (e *NotNextError) Error() string {
	return fmt.Sprintf("event %d of %s is not the next one, which is %d: look again what blocks the aggregate", e.Number, e.Aggregate, e.Next)
}

// ExternalPositionsError is an [ErrExternalPositions] of [Groups.Trim], with the group whose positions it needs.
type ExternalPositionsError struct{ Group, Topic string }

func (e *ExternalPositionsError) Error() string {
	return fmt.Sprintf("consumer group %q on topic %q: %v: make Groups with WithPositions and that store", e.Group, e.Topic, ErrExternalPositions)
}

// Unwrap returns ErrExternalPositions.
func (e *ExternalPositionsError) Unwrap() error { return ErrExternalPositions }

// TrimKeepError reports a [TrimOptions].Keep that is too short. Nothing was removed.
type TrimKeepError struct{ Keep time.Duration }

func (e *TrimKeepError) Error() string {
	return fmt.Sprintf("TrimOptions.Keep is %s: use %s at least, and rather days", e.Keep, minKeep)
}
