package repository

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
)

// ErrNilDecision reports that the decision of Execute is nil. Nothing was written. Most other
// errors come from the packages journal and aggregate.
var ErrNilDecision = errors.New("the decision is nil: pass a function")

// RefusedError reports that the decision of [Repository.Execute] or [Transaction.Execute] returned
// an error. Err is that error, and the text is its text. Nothing was written. ID is the id of the
// aggregate, or of the first participant.
//
// All other errors come from the call or the store, so a message handler can ack a command that was
// refused. Some of the other errors return at each delivery: [journal.ErrInvalidCommit],
// [*journal.TooLargeError], [*aggregate.InvalidIDError], and those that package command also acks:
// [*journal.DeletedError], [journal.ErrKeyDestroyed] and [*CommandMismatchError].
type RefusedError struct {
	ID  aggregate.ID
	Err error
}

func (e *RefusedError) Error() string { return fmt.Sprint(e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

// SameParticipantError reports that an aggregate was added to a [Transaction] twice, for example a
// transfer from an account to itself. Nothing was written. It is a [journal.ErrInvalidCommit]. If
// the ids come from a client, it is an error of the client: reply with status 400 (Bad Request).
type SameParticipantError struct {
	ID aggregate.ID // the aggregate that was added twice
}

func (e *SameParticipantError) Error() string {
	return fmt.Sprintf("%v: %s is among the participants twice: add it once", journal.ErrInvalidCommit, e.ID)
}

// Unwrap returns [journal.ErrInvalidCommit].
func (e *SameParticipantError) Unwrap() error { return journal.ErrInvalidCommit }

// CommandMismatchError reports that the command id was used before, for a command with another
// content ([WithCommandContent]). Nothing was written. It is an error of the client: reply with
// status 422 (Unprocessable Content), and do not repeat the call.
type CommandMismatchError struct {
	ID        aggregate.ID // the aggregate, or the first participant
	CommandID string       // the id that was used twice
	CommitID  string       // the commit of the earlier command
}

func (e *CommandMismatchError) Error() string {
	return fmt.Sprintf("command %q of %s, nothing written: commit %s has executed a command with this id and another content: use a new id for another command",
		e.CommandID, e.ID, printable.Text(e.CommitID))
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("repository config: %s %s", e.Field, e.Reason)
}

// EventError reports a stored event that cannot be applied, so that its aggregate cannot be loaded.
// Err is an [*aggregate.UnknownEventError], an [*aggregate.MalformedEventError] or an
// [*aggregate.UpcastError]. Nothing was written.
type EventError struct {
	ID     aggregate.ID // the aggregate of the event
	Number uint64       // the sequence number of the event
	Err    error
}

func (e *EventError) Error() string { return fmt.Sprintf("event %d of %s: %v", e.Number, e.ID, e.Err) }
func (e *EventError) Unwrap() error { return e.Err }

// NoSuchEventError reports that the aggregate has no event with that number. Version is the number
// of its last event.
type NoSuchEventError struct {
	ID              aggregate.ID // the aggregate
	Number, Version uint64       // the number asked for, and the version of the aggregate
}

func (e *NoSuchEventError) Error() string {
	return fmt.Sprintf("%s has no event %d yet, its last is %d", e.ID, e.Number, e.Version)
}

// AttemptsError reports that other writers were faster in each of [Config.MaxAttempts] attempts.
// Nothing was written. Err is the last [*journal.ConflictError].
type AttemptsError struct {
	ID       aggregate.ID // the aggregate
	Attempts int          // how many attempts were made
	Err      error
}

func (e *AttemptsError) Error() string {
	return fmt.Sprintf("execute on %s, nothing written: other writers were faster in all of %d attempts, the last time: %v",
		e.ID, e.Attempts, e.Err)
}
func (e *AttemptsError) Unwrap() error { return e.Err }

// UnencodableStateError reports that a state with maps, slices, pointers or interfaces could not be
// copied: the snapshot codec fails to encode it, or to decode its own bytes. Nothing was written.
type UnencodableStateError struct {
	ID      aggregate.ID // the aggregate
	Version uint64       // the version of the state
	Err     error        // the error of the codec
}

func (e *UnencodableStateError) Error() string {
	return fmt.Sprintf("copy the state of %s at version %d, nothing written: %v: use a state that its codec can encode and decode",
		e.ID, e.Version, e.Err)
}
func (e *UnencodableStateError) Unwrap() error { return e.Err }
