package groups

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Errors of this package, for errors.Is. Errors of the journal, such as journal.ErrThrottled and journal.ErrTableMissing, come too.
var (
	// ErrNoGroup: there is no group of that name on that topic. A group comes into being when it first subscribes.
	ErrNoGroup = checkpoint.ErrNoGroup
	// ErrActive: members are at work, or were lately. See [ActiveError].
	ErrActive = errors.New("consumer group is active")
	// ErrNotParked: the group goes on with the aggregate, or has nothing to do there.
	ErrNotParked = errors.New("aggregate is not parked")
	// ErrNotNext: the event is not the one that the aggregate waits for. Nothing was changed. See [NotNextError].
	ErrNotNext = errors.New("event is not the next one")
	// ErrNotSkipped: there is no record that the group skipped the event. Nothing was changed.
	ErrNotSkipped = errors.New("event was not skipped")
	// ErrNoSuchEvent: the aggregate has no event of that number. Nothing was changed.
	ErrNoSuchEvent = errors.New("aggregate has no such event")
	// ErrNotApplied: the group had not applied the event when the time was over. See [NotAppliedError].
	ErrNotApplied = errors.New("event is not applied yet")
	// ErrElsewhere: members keep the group's positions in a store of their own (subscriber.Config.Positions), as those of SQL read models do. Nothing
	// was changed. Reading needs [WithPositions]; Skip and ResetAggregate cannot be done here, see docs/sql.md for how they are done there.
	ErrElsewhere = errors.New("the group's positions are not in the checkpoint table")
	// ErrLeftovers: the group was reset and works, but rows from before the reset are left in the table. Nothing reads
	// them; [Groups.CleanUp] deletes them.
	ErrLeftovers = errors.New("rows from before the reset are left")
	// ErrFenced: the shard was taken from the operator again and again before it had done, as happens where its writes take
	// longer than the members' leases. Parts of the edit may have been done; do it again, but [Groups.ResetAggregate] only where
	// [Groups.Applied] tells that the position was not put, or events come once more.
	ErrFenced = checkpoint.ErrFenced
	// ErrCorrupt: a row of the checkpoint table is none that was written by this module. The text names it.
	ErrCorrupt = checkpoint.ErrCorrupt
)

// ActiveError is an [ErrActive].
type ActiveError struct {
	Members []uint64 // who have not left
	Shards  []int    // that they own
}

func (e *ActiveError) Error() string {
	return fmt.Sprintf("consumer group is active: members %d have not left, and own shards %d; "+
		"close them, and where they crashed wait for the time of a lease while another member runs", e.Members, e.Shards)
}

// Is makes errors.Is(err, ErrActive) true.
func (e *ActiveError) Is(target error) bool { return target == ErrActive }

// NotNextError is an [ErrNotNext].
type NotNextError struct {
	Aggregate aggregate.ID
	Number    uint64 // of the event that was named
	Next      uint64 // of the event that the group has not handled yet
}

func (e *NotNextError) Error() string {
	return fmt.Sprintf("event %d of %s is not the next one, which is %d: look again what blocks the aggregate", e.Number, e.Aggregate, e.Next)
}

// Is makes errors.Is(err, ErrNotNext) true.
func (e *NotNextError) Is(target error) bool { return target == ErrNotNext }
