package journal

import (
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Errors without data, for errors.Is. ErrConflict and ErrOutcomeUnknown also have types that carry
// details. All other conditions with details have only a type, for errors.As.
var (
	// ErrNotFound reports that the aggregate has no events.
	ErrNotFound = journaltype.ErrNotFound
	// ErrConflict reports that the aggregate has another version than expected. Nothing was
	// written. Load the aggregate again and decide again.
	ErrConflict = journaltype.ErrConflict
	// ErrOutcomeUnknown reports that the commit may have been written, or may still be written.
	// Call [Journal.Resolve] before you repeat the command.
	ErrOutcomeUnknown = journaltype.ErrOutcomeUnknown
	// ErrInvalidCommit reports that a commit cannot be written, such as one without events. Nothing
	// was written.
	ErrInvalidCommit = journaltype.ErrInvalidCommit
	// ErrNotCovered reports that events cannot be truncated because no snapshot stands for them.
	ErrNotCovered = journaltype.ErrNotCovered
	// ErrKeyDestroyed reports that the key that encrypted a payload was destroyed.
	ErrKeyDestroyed = journaltype.ErrKeyDestroyed
	// ErrThrottled reports that DynamoDB refused a request because of missing capacity, for longer
	// than [Config.RetryBudget].
	ErrThrottled = journaltype.ErrThrottled
	// ErrContended reports that other transactions on the same items were under way for longer than
	// [Config.RetryBudget].
	ErrContended = journaltype.ErrContended
	// ErrUnavailable reports that DynamoDB could not be reached or failed in all attempts.
	ErrUnavailable = journaltype.ErrUnavailable
	// ErrTableMissing reports that a table or an index does not exist.
	ErrTableMissing = journaltype.ErrTableMissing
	// ErrAccess reports that credentials are missing or wrong, or lack a permission.
	ErrAccess = journaltype.ErrAccess
	// ErrRestored reports that the tables were restored from a backup after the journal was opened;
	// see [MarkRestored].
	ErrRestored = journaltype.ErrRestored
	// ErrNoDescriptor reports that the tables were neither created by [Create] nor taken over by
	// [Adopt].
	ErrNoDescriptor = journaltype.ErrNoDescriptor
)

// Errors with data, for errors.As.
type (
	// ConfigError reports a setting that cannot work.
	ConfigError = journaltype.ConfigError
	// ConflictError is an [ErrConflict] with the versions.
	ConflictError = journaltype.ConflictError
	// DeletedError reports an aggregate that was deleted, which is final.
	DeletedError = journaltype.DeletedError
	// EventTypeError reports an event whose type [Config.EventType] could not find.
	EventTypeError = journaltype.EventTypeError
	// TruncatedError reports events that were removed by [Journal.Truncate] or [Journal.Delete].
	TruncatedError = journaltype.TruncatedError
	// DuplicateCommandError reports that the command id was used before.
	DuplicateCommandError = journaltype.DuplicateCommandError
	// WriteRefusedError reports that DynamoDB refused one of the caller's writes.
	WriteRefusedError = journaltype.WriteRefusedError
	// OutcomeUnknownError is an [ErrOutcomeUnknown] with details. Pass it to [Journal.Resolve].
	OutcomeUnknownError = journaltype.OutcomeUnknownError
	// TooLargeError reports that a limit of an item or of a transaction is exceeded.
	TooLargeError = journaltype.TooLargeError
	// VersionError reports an archived aggregate whose version no application reaches.
	VersionError = journaltype.VersionError
	// CorruptItemError reports an item that is missing or cannot be decoded, by its keys.
	CorruptItemError = journaltype.CorruptItemError
	// EncodingError reports a payload that could not be encoded or decoded.
	EncodingError = journaltype.EncodingError
	// DescriptorMismatchError reports tables whose settings differ from the given ones.
	DescriptorMismatchError = journaltype.DescriptorMismatchError
)
