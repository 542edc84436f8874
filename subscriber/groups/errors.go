package groups

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Errors of this package, for errors.Is. [*ActiveError], [*NotNextError], [*NoTopicError],
// [*ReplayError], [*ExternalPositionsError] and [*TrimKeepError] are for errors.As. Methods also
// return errors of the journal, such as journal.ErrThrottled and journal.ErrTableMissing.
//
// An edit of an aggregate returns subscriber.ErrFenced if the operator has lost the shard five
// times. It loses the shard to another operator, or when its heartbeats fail for the 10 seconds of
// its lease; then the text contains the error of the last heartbeat. Parts of the edit may be done.
// Repeat it; but repeat [Groups.ResetAggregate] only if [Groups.Position] shows that the position
// was not set, since a repetition delivers events once more.
var (
	// ErrNoGroup reports that there is no group with this name on the topic. A group is created
	// when it first subscribes.
	ErrNoGroup = checkpoint.ErrNoGroup
	// ErrNotParked reports that the aggregate is not parked: the group tries its events, or has
	// handled all of them.
	ErrNotParked = errors.New("aggregate is not parked")
	// ErrNotSkipped reports that there is no record that the group skipped the event. Nothing was
	// changed.
	ErrNotSkipped = errors.New("event was not skipped")
	// ErrNoSuchEvent reports that the aggregate has no event with this number. Nothing was changed.
	ErrNoSuchEvent = errors.New("aggregate has no such event")
	// ErrNotApplied reports that the group had not applied the event when the context ended. The
	// text contains the position of the group.
	ErrNotApplied = errors.New("event is not applied yet")
	// ErrExternalPositions reports that members store the group's positions outside of the
	// checkpoint table (subscriber.Config.Positions), as SQL read models do. Nothing was changed.
	// Reading needs [WithPositions]. Skip and ResetAggregate have to be done in that store, see
	// docs/guides/sql.md.
	ErrExternalPositions = errors.New("the group's positions are not in the checkpoint table")
	// ErrRowAhead reports that the position cannot be set back, because the row of the aggregate is
	// the position (projection.Rows) and contains the later events. Nothing was changed. Reset the
	// aggregate to 0, which empties the row.
	ErrRowAhead = errors.New("the row contains later events than the position")
	// ErrNoGroups reports that the topic has no consumer group, or lacks one of TrimOptions.Groups,
	// so nothing shows that its events were handled. Nothing was removed. Set
	// TrimOptions.WithoutGroups to trim a topic without groups anyway.
	ErrNoGroups = errors.New("the topic has no consumer group, so nothing shows that its events were handled")
	// ErrLeftovers reports that the group was reset or removed, but old rows of earlier resets or
	// removals could not be deleted. Nothing reads them. The next Reset, Remove or
	// [Group.CleanUp] deletes them.
	ErrLeftovers = errors.New("old rows could not be deleted")
	// ErrCorrupt reports a row of the checkpoint table that this module cannot have written. The
	// text contains its key.
	ErrCorrupt = checkpoint.ErrCorrupt
)

// ActiveError reports that the group has members. Nothing was changed.
type ActiveError struct {
	// Members are the numbers of the members that have not left.
	Members []uint64
	// Shards are the shards that they own. From WaitIdle it also includes shards that were taken
	// from members that may still be handling events of them.
	Shards []int
}

func (e *ActiveError) Error() string {
	return fmt.Sprintf("consumer group is active: members %d have not left, and own shards %d; "+
		"close them; if they have crashed, wait for the time of a lease while another member runs", e.Members, e.Shards)
}

// NotNextError reports that an event is not the next one that the group has to handle in the
// aggregate. Nothing was changed.
type NotNextError struct {
	Aggregate aggregate.ID // the aggregate of the event
	Number    uint64       // number that was passed
	Next      uint64       // number of the next event to handle
}

func (e *NotNextError) Error() string {
	return fmt.Sprintf("event %d of %s is not the next event, which is %d: check again which event blocks the aggregate", e.Number, e.Aggregate, e.Next)
}

// ReplayError reports that a group would deliver events again whose effects must not happen again
// (subscriber.Config.NoReplay), for example because they go to other systems. Nothing was changed.
type ReplayError struct{}

func (e *ReplayError) Error() string {
	return "the group would deliver events again that must not be repeated without a confirmation, because it has subscriber.Config.NoReplay: " +
		"make Groups with WithReplay if their effects may happen again"
}

// NoTopicError is an [ErrNotApplied] and an [ErrNoGroup] of [Groups.WaitApplied]: the group exists,
// but has not joined the topic of the aggregate. So it does not handle the event, unless a program
// joins the topic later.
type NoTopicError struct {
	Group, Topic string   // the group, and the topic that it has not joined
	Topics       []string // the topics of the group
}

func (e *NoTopicError) Error() string {
	return fmt.Sprintf("consumer group %q has the topics %q, and not %q: correct the name of the group, or subscribe it to the topic",
		e.Group, e.Topics, e.Topic)
}

// Unwrap returns ErrNotApplied and ErrNoGroup.
func (e *NoTopicError) Unwrap() []error { return []error{ErrNotApplied, ErrNoGroup} }

// ExternalPositionsError is an [ErrExternalPositions] of [Groups.Trim]. Group and Topic
// name the group whose positions Trim needs.
type ExternalPositionsError struct{ Group, Topic string }

func (e *ExternalPositionsError) Error() string {
	return fmt.Sprintf("consumer group %q on topic %q: %v: make Groups with WithPositions and that store", e.Group, e.Topic, ErrExternalPositions)
}

// Unwrap returns ErrExternalPositions.
func (e *ExternalPositionsError) Unwrap() error { return ErrExternalPositions }

// TrimKeepError reports a [TrimOptions].Keep that is too short. Nothing was removed.
type TrimKeepError struct{ Keep time.Duration }

func (e *TrimKeepError) Error() string {
	return fmt.Sprintf("TrimOptions.Keep is %s: use at least %s, and preferably days", e.Keep, minKeep)
}
