package journaltype

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/printable"
)

// Errors without data, for errors.Is. ErrConflict and ErrOutcomeUnknown also have types that carry
// details. All other conditions with details have only a type, for errors.As.
var (
	// ErrNotFound reports that the aggregate has no events. Nothing was written.
	ErrNotFound = errors.New("aggregate not found")
	// ErrConflict reports that the aggregate has another version than expected. Nothing was
	// written. Load the aggregate again and decide again.
	ErrConflict = errors.New("version conflict")
	// ErrOutcomeUnknown reports that the commit may have been written, or may still be written.
	// Call Journal.Resolve before you repeat the command.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrInvalidCommit reports that a commit cannot be written: it has no events, text that is not
	// UTF-8, a command id that is too long, or a write that it may not contain. Nothing was
	// written.
	ErrInvalidCommit = errors.New("invalid commit")
	// ErrNotCovered reports that events cannot be truncated because no snapshot stands for them.
	// Nothing was removed.
	ErrNotCovered = errors.New("not covered by a snapshot")
	// ErrKeyDestroyed reports that the key that encrypted a payload was destroyed, so the payload
	// cannot be read any more. A commit that fails with it has written nothing. An [Encoding]
	// returns it, and the journal wraps it in an [*EncodingError].
	ErrKeyDestroyed = errors.New("encryption key destroyed")
	// ErrThrottled reports that DynamoDB refused a request because of missing capacity, for longer
	// than journal.Config.RetryBudget. A commit that fails with it has written nothing.
	ErrThrottled = dynamo.ErrThrottled
	// ErrContended reports that other transactions on the same items were under way for longer than
	// journal.Config.RetryBudget. In the layout [Packed] it also reports that commands without
	// events of other processes took the place of a commit or a deletion repeatedly. A commit that
	// fails with it has written nothing.
	ErrContended = dynamo.ErrContended
	// ErrUnavailable reports that DynamoDB could not be reached or failed in all attempts, or that
	// a read had no reply within 10 seconds. A commit that fails with it has written nothing. If
	// that is not certain, the error is ErrOutcomeUnknown.
	ErrUnavailable = dynamo.ErrUnavailable
	// ErrTableMissing reports that a table or an index does not exist.
	ErrTableMissing = dynamo.ErrTableMissing
	// ErrAccess reports that credentials are missing or wrong, or lack a permission. Nothing was
	// written.
	ErrAccess = dynamo.ErrAccess
	// ErrRestored reports that the tables were restored from a backup after the journal was opened;
	// see journal.MarkRestored. Nothing was written. Restart the process.
	ErrRestored = errors.New("the journal was restored from a backup since it was opened")
	// ErrNoDescriptor reports that the tables were neither created by journal.Create nor taken over
	// by journal.Adopt.
	ErrNoDescriptor = errors.New("journal has no descriptor")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("journal config: %s %s", e.Field, e.Reason) }

// ConflictError is an [ErrConflict] with the versions. Actual is 0 if the aggregate has no events,
// or if its version is not known.
type ConflictError struct {
	ID               aggregate.ID // the aggregate
	Expected, Actual uint64       // the expected version and the actual one
}

func (e *ConflictError) Error() string {
	if e.Actual == 0 {
		return fmt.Sprintf("aggregate %s is not at version %d as expected: load it again and decide again", e.ID, e.Expected)
	}
	return fmt.Sprintf("aggregate %s is at version %d, not at %d as expected: load it again and decide again", e.ID, e.Actual, e.Expected)
}
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// DeletedError reports an aggregate that was deleted, which is final. Version is the number of its
// last event. At is the time of the deletion. Nothing was written.
type DeletedError struct {
	ID      aggregate.ID // the aggregate
	Version uint64
	At      time.Time
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("aggregate %s was deleted at %s, after event %d: use another id", e.ID, e.At.Format(time.RFC3339), e.Version)
}

// EventTypeError reports an event whose type journal.Config.EventType could not find. Err is its
// error.
type EventTypeError struct {
	ID     aggregate.ID // the aggregate of the event
	Number uint64       // its sequence number
	Err    error
}

func (e *EventTypeError) Error() string {
	return fmt.Sprintf("determine the type of event %d of %s: %v", e.Number, e.ID, e.Err)
}
func (e *EventTypeError) Unwrap() error { return e.Err }

// TruncatedError reports events that were removed by Journal.Truncate or Journal.Delete. Events
// with the number Before and higher exist, unless the aggregate ends before that number.
type TruncatedError struct {
	ID     aggregate.ID // the aggregate
	Before uint64
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("events of %s before %d were removed: start from there, or from a snapshot", e.ID, e.Before)
}

// DuplicateCommandError reports that the command id was used before. Nothing was written. CommitID,
// First and Version describe the earlier commit: First and Version are the numbers of its first and
// last event. If that command had no events, First is Version+1.
//
// The id of a command for several aggregates belongs to the whole journal. ID, First and Version
// are then zero.
type DuplicateCommandError struct {
	ID                  aggregate.ID
	CommandID, CommitID string // the ids of the command and of the earlier commit
	First, Version      uint64
}

func (e *DuplicateCommandError) Error() string {
	if e.ID == (aggregate.ID{}) {
		return fmt.Sprintf("append, nothing written: command %q was executed before, by commit %s", e.CommandID, printable.Text(e.CommitID))
	}
	return fmt.Sprintf("append to %s, nothing written: command %q was executed before, by commit %s, which led to version %d",
		e.ID, e.CommandID, printable.Text(e.CommitID), e.Version)
}

// WriteRefusedError reports that DynamoDB refused one of the caller's writes. Nothing was written.
// Index is the position of the write, from 0. Code is the code of the cancellation reason:
// "ConditionalCheckFailed" for a false condition. Item is the stored item if the write asks for it
// with ReturnValuesOnConditionCheckFailure.
type WriteRefusedError struct {
	ID            aggregate.ID // the aggregate of the commit
	Index         int
	Table         string // the table of the write
	Code, Message string // DynamoDB's code and text of the reason
	Item          map[string]types.AttributeValue
}

func (e *WriteRefusedError) Error() string {
	return fmt.Sprintf("append to %s, nothing written: write %d, to table %q, was refused: %s: %s", e.ID, e.Index, e.Table, e.Code, e.Message)
}

// OutcomeUnknownError is an [ErrOutcomeUnknown] with details. Pass it to Journal.Resolve. Another
// process can rebuild it from the exported fields; it does not need Err.
type OutcomeUnknownError struct {
	// ID is the aggregate. For a commit to several aggregates, Joint is true and ID is one of them.
	ID        aggregate.ID
	Joint     bool
	First     uint64 // sequence number of the commit's first event
	CommitID  string // the id of the commit, which Resolve looks for
	CommandID string // empty if the commit has none
	Err       error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("append to %s: commit %s, which begins with event %d, may or may not have been written, resolve it before repeating the command: %v",
		e.ID, printable.Text(e.CommitID), e.First, e.Err)
}
func (e *OutcomeUnknownError) Is(target error) bool { return target == ErrOutcomeUnknown }
func (e *OutcomeUnknownError) Unwrap() error        { return e.Err }

// TooLargeError reports that a limit is exceeded. An item may have 400 KB, and a commit 4 MB. The
// transaction of a commit may have 100 actions, so a commit without other actions may have 99
// events. What names the item, or says that it is the commit. Unit is the unit of Size and Limit:
// "bytes", as DynamoDB counts them, "events" or "actions". Nothing was written.
type TooLargeError struct {
	ID          aggregate.ID // the aggregate of the commit
	What        string
	Size, Limit int
	Unit        string
}

func (e *TooLargeError) Error() string {
	if e.Unit == "actions" {
		return fmt.Sprintf("append to %s: %s needs %d actions, a transaction has room for %d: split the decision",
			e.ID, e.What, e.Size, e.Limit)
	}
	if e.Unit == "events" {
		return fmt.Sprintf("append to %s: %s has %d events, its transaction has room for %d: split the decision", e.ID, e.What, e.Size, e.Limit)
	}
	return fmt.Sprintf("append to %s: %s has %d bytes, DynamoDB allows %d: keep large data elsewhere and store a reference, or split the commit",
		e.ID, e.What, e.Size, e.Limit)
}

// VersionError reports an archived aggregate whose version is above Limit, which no application
// reaches. Nothing was written.
type VersionError struct {
	ID             aggregate.ID // the aggregate
	Version, Limit uint64       // Version is the number that is too high
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("version %d of %s is above %d, which no application reaches: the archive is wrong; export the aggregate again",
		e.Version, e.ID, e.Limit)
}

// CorruptItemError reports an item that is missing or cannot be decoded, by its keys. Aggregate and
// Number are set if the item is an event whose keys can be decoded. Aggregate is also set for a
// head whose aggregate is known. Misplaced is true for a head in a shard where readers do not
// expect its aggregate; Journal.Heads finds such heads. The right shard may have another head of
// the aggregate. Missing is true for an event that is not in the table, although the head or later
// events show that it was written.
type CorruptItemError struct {
	Aggregate                    aggregate.ID
	Number                       uint64
	Table, PartitionKey, SortKey string // the table and the keys of the item
	Misplaced, Missing           bool
	Reason                       string // what is wrong with the item
	// Remedy says what to do. Empty means to restore the item from a backup or to correct it.
	Remedy string
}

func (e *CorruptItemError) Error() string {
	remedy := e.Remedy
	if remedy == "" {
		remedy = "restore it from a backup or correct it by hand"
	}
	return fmt.Sprintf("item %q / %q of table %q %s: %s", e.PartitionKey, e.SortKey, e.Table, e.Reason, remedy)
}

// EncodingError reports a payload that could not be encoded or decoded. If encoding failed, nothing
// was written. Err is the error of the encoding, or says that journal.Config.Encodings lacks it.
type EncodingError struct {
	Place
	Encoding string // the name of the encoding
	Err      error
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("%s: encoding %q: %v", e.Place, e.Encoding, e.Err)
}
func (e *EncodingError) Unwrap() error { return e.Err }

// DescriptorMismatchError reports tables whose settings differ from the given ones. Field names the
// setting. Stored is the value of the tables, Given the value of this process.
type DescriptorMismatchError struct {
	Table                string // the table that holds the descriptor
	Field, Stored, Given string
}

func (e *DescriptorMismatchError) Error() string {
	text := (*dynamo.MismatchError)(e).Error()
	switch e.Field {
	case "layout":
		if stored := Layout(e.Stored); stored == Classic || stored == Packed {
			text = fmt.Sprintf("table %q was made with layout %s, Config.Layout is %s: set it to %s, or use another table",
				e.Table, stored, e.Given, stored.constant())
		}
	case "format version":
		text = fmt.Sprintf("table %q has format version %s, this version of Millrace reads up to %s: use the version of the programs that write it, or a later one",
			e.Table, e.Stored, e.Given)
	case "encodings required by type":
		text = fmt.Sprintf("table %q requires by type the encodings %s, the config names also %s: add them with journal.Create, which is possible while a type has no aggregates",
			e.Table, e.Stored, e.Given)
	case "snapshot table":
		text += "; if both were restored from a backup under other names, call journal.MarkRestored"
	}
	return text
}
