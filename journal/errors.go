package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/units"
)

// Errors without data, for errors.Is. ErrConflict and ErrOutcomeUnknown also have types that carry
// details. Use errors.As for all other conditions, which have only a type.
var (
	// ErrNotFound reports that the aggregate has no events. Nothing was written.
	ErrNotFound = errors.New("aggregate not found")
	// ErrConflict reports that the aggregate has another version than expected. Nothing was
	// written. Load the aggregate again and decide again.
	ErrConflict = errors.New("version conflict")
	// ErrOutcomeUnknown reports that the commit may have been written, or may still be. Call
	// [Journal.Resolve] before you repeat the command.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrInvalidCommit reports that a commit cannot be written as it is: it has no events, text
	// that is not UTF-8, a command id that is too long, or a write that may not be part of it.
	// Nothing was written.
	ErrInvalidCommit = errors.New("invalid commit")
	// ErrNotCovered reports that events cannot be truncated because no snapshot stands for them.
	// Nothing was removed.
	ErrNotCovered = errors.New("not covered by a snapshot")
	// ErrKeyDestroyed reports that the key that encrypted a payload was destroyed, so the payload
	// cannot be read any more. A commit that fails with it has written nothing. An [Encoding]
	// returns it, inside an [*EncodingError].
	ErrKeyDestroyed = errors.New("encryption key destroyed")
	// ErrThrottled reports that DynamoDB refused a request for longer than [Config.RetryBudget],
	// for lack of capacity. A commit has written nothing.
	ErrThrottled = dynamo.ErrThrottled
	// ErrContended reports that other transactions were under way on the same items for longer than
	// [Config.RetryBudget], or in the layout [Packed] that commands without events of other
	// processes took the place of a commit or a deletion again and again. A commit has written
	// nothing.
	ErrContended = dynamo.ErrContended
	// ErrUnavailable reports that DynamoDB could not be reached or failed, in all attempts, or that
	// a read had no reply within 10 seconds. A commit has written nothing; where that is not known,
	// the error is ErrOutcomeUnknown.
	ErrUnavailable = dynamo.ErrUnavailable
	// ErrTableMissing reports that a table or an index does not exist.
	ErrTableMissing = dynamo.ErrTableMissing
	// ErrAccess reports that credentials are missing or wrong, or lack a permission. Nothing was
	// written.
	ErrAccess = dynamo.ErrAccess
	// ErrUnitLimit reports that a request was not sent because the context has reached the limit of
	// [LimitUnits].
	ErrUnitLimit = units.ErrLimit
	// ErrRestored reports that the tables were restored from a backup since the journal was opened;
	// see [MarkRestored]. Nothing was written. Restart the process.
	ErrRestored = errors.New("the journal was restored from a backup since it was opened")
	// ErrNoDescriptor reports that the tables were not created by [Create] and not taken over by
	// [Adopt].
	ErrNoDescriptor = errors.New("journal has no descriptor")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("journal config: %s %s", e.Field, e.Reason) }

// ConflictError is an [ErrConflict], with the versions. Actual is 0 if the aggregate has no events,
// or if it is not known how many.
type ConflictError struct {
	ID               aggregate.ID
	Expected, Actual uint64
}

func (e *ConflictError) Error() string {
	if e.Actual == 0 {
		return fmt.Sprintf("aggregate %s is not at version %d as expected: load it again and decide again", e.ID, e.Expected)
	}
	return fmt.Sprintf("aggregate %s is at version %d, not at %d as expected: load it again and decide again", e.ID, e.Actual, e.Expected)
}
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// DeletedError reports an aggregate that was deleted, which is final. Version is that of the last
// event that it had. Nothing was written.
type DeletedError struct {
	ID      aggregate.ID
	Version uint64
	At      time.Time
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("aggregate %s was deleted at %s, after event %d: use another id", e.ID, e.At.Format(time.RFC3339), e.Version)
}

// EventTypeError reports an event whose type [Config.EventType] could not find. Err is its error.
type EventTypeError struct {
	ID     aggregate.ID
	Number uint64
	Err    error
}

func (e *EventTypeError) Error() string {
	return fmt.Sprintf("determine the type of event %d of %s: %v", e.Number, e.ID, e.Err)
}
func (e *EventTypeError) Unwrap() error { return e.Err }

// TruncatedError reports events that were removed by [Journal.Truncate] or [Journal.Delete]. Events
// from Before on are there, or none if it is beyond the last.
type TruncatedError struct {
	ID     aggregate.ID
	Before uint64
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("events of %s before %d were removed: start from there, or from a snapshot", e.ID, e.Before)
}

// DuplicateCommandError reports a command id that the aggregate already has. Nothing was written.
// CommitID, First and Version describe the earlier commit: First and Version are the numbers of its
// first and last event. If that command had no events, First is Version+1.
//
// The id of a command of several aggregates belongs to the whole journal. Then ID, First and
// Version are zero.
type DuplicateCommandError struct {
	ID                  aggregate.ID
	CommandID, CommitID string
	First, Version      uint64
}

func (e *DuplicateCommandError) Error() string {
	if e.ID == (aggregate.ID{}) {
		return fmt.Sprintf("append, nothing written: command %q was executed before, by commit %s", e.CommandID, e.CommitID)
	}
	return fmt.Sprintf("append to %s, nothing written: command %q was executed before, by commit %s, which led to version %d",
		e.ID, e.CommandID, e.CommitID, e.Version)
}

// WriteRefusedError reports that DynamoDB refused one of the caller's writes. Index is its place.
// Nothing was written. Code is that of the cancellation reason, "ConditionalCheckFailed" for a
// false condition. Item is the item as it is, if the write asks for it by
// ReturnValuesOnConditionCheckFailure.
type WriteRefusedError struct {
	ID            aggregate.ID
	Index         int
	Table         string
	Code, Message string
	Item          map[string]types.AttributeValue
}

func (e *WriteRefusedError) Error() string {
	return fmt.Sprintf("append to %s, nothing written: write %d, to table %q, was refused: %s: %s", e.ID, e.Index, e.Table, e.Code, e.Message)
}

// OutcomeUnknownError is an [ErrOutcomeUnknown]. Pass it to [Journal.Resolve]. Another process can
// rebuild it from the exported fields except Err.
type OutcomeUnknownError struct {
	// ID is the aggregate. For a commit to several aggregates, Joint is true and ID is one of them.
	ID        aggregate.ID
	Joint     bool
	First     uint64 // sequence number of the commit's first event
	CommitID  string
	CommandID string // of a commit that has one
	Err       error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("append to %s: commit %s from event %d on may or may not have been written, resolve it before repeating the command: %v",
		e.ID, e.CommitID, e.First, e.Err)
}
func (e *OutcomeUnknownError) Is(target error) bool { return target == ErrOutcomeUnknown }
func (e *OutcomeUnknownError) Unwrap() error        { return e.Err }

// TooLargeError reports an item over 400 KB, a commit over 4 MB, a commit with more events than a
// transaction has room for, 99 without anything else, or a commit to several aggregates with more
// actions. What says which item, or that it is the commit. Unit is "bytes", as DynamoDB counts
// them, "events" or "actions". Nothing was written.
type TooLargeError struct {
	ID          aggregate.ID
	What        string
	Size, Limit int
	Unit        string
}

func (e *TooLargeError) Error() string {
	if e.Unit == unitActions {
		return fmt.Sprintf("append to %s: %s needs %d actions, a transaction has room for %d: split the decision",
			e.ID, e.What, e.Size, e.Limit)
	}
	if e.Unit == unitEvents {
		return fmt.Sprintf("append to %s: %s has %d events, its transaction has room for %d: split the decision", e.ID, e.What, e.Size, e.Limit)
	}
	return fmt.Sprintf("append to %s: %s has %d bytes, DynamoDB allows %d: keep large data elsewhere and store a reference, or split the commit",
		e.ID, e.What, e.Size, e.Limit)
}

const unitBytes, unitEvents, unitActions = "bytes", "events", "actions"

// CorruptItemError reports an item of the store that is missing or cannot be read, by its keys.
// Aggregate and Number are set if the item is an event whose keys can be read. Aggregate is also
// set for a head whose aggregate is known. Misplaced is true if a head is stored in a shard where
// its aggregate is not looked up: [Journal.Heads] finds such heads. There may be another head in
// the right shard.
type CorruptItemError struct {
	Aggregate                    aggregate.ID
	Number                       uint64
	Table, PartitionKey, SortKey string
	Misplaced                    bool
	Reason                       string
}

func (e *CorruptItemError) Error() string {
	return fmt.Sprintf("item %q / %q of table %q %s: restore it from a backup or correct it by hand", e.PartitionKey, e.SortKey, e.Table, e.Reason)
}

// EncodingError reports a payload that could not be encoded or decoded. If encoding failed, nothing
// was written. Err is the encoding's error, or says that [Config.Encodings] has none of that name.
type EncodingError struct {
	Place
	Encoding string
	Err      error
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("%s: encoding %q: %v", e.Place, e.Encoding, e.Err)
}
func (e *EncodingError) Unwrap() error { return e.Err }

// DescriptorMismatchError reports tables that were made with other settings than the given ones.
type DescriptorMismatchError struct {
	Table                string
	Field, Stored, Given string
}

func (e *DescriptorMismatchError) Error() string {
	text := (*dynamo.MismatchError)(e).Error()
	if e.Field == snapshotTableField {
		text += "; if both were restored from a backup under other names, call journal.MarkRestored"
	}
	return text
}
