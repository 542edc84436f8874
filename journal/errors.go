package journal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Sentinels for errors.Is. The types that carry the details are named after them.
var (
	// ErrNotFound: the aggregate has no events. Nothing was written.
	ErrNotFound = errors.New("aggregate not found")
	// ErrConflict: the head has another version than expected. Nothing was
	// written. Load the aggregate again and decide again.
	ErrConflict = errors.New("version conflict")
	// ErrOutcomeUnknown: the commit may have been written, or may still be. Ask
	// [Journal.Resolve] before you repeat the command.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrInvalidOutcome: an [OutcomeUnknownError] that was made by hand lacks what [Journal.Resolve] needs.
	ErrInvalidOutcome = errors.New("incomplete outcome")
	// ErrTooLarge: an item is over 400 KB, or a commit over 4 MB. Nothing was written.
	ErrTooLarge = errors.New("too large for DynamoDB")
	// ErrTooManyEvents: a commit has more than [MaxEvents] events. Nothing was written.
	ErrTooManyEvents = errors.New("too many events in one commit")
	// ErrDeleted: the aggregate was deleted, which is for good. Nothing was written.
	ErrDeleted = errors.New("aggregate deleted")
	// ErrTruncated: events that were asked for have been removed by [Journal.Truncate] or [Journal.Delete].
	ErrTruncated = errors.New("events truncated")
	// ErrDuplicateCommand: a commit with the same command id has been written before. Nothing was written now.
	ErrDuplicateCommand = errors.New("command was executed before")
	// ErrWriteRefused: one of [Commit.Writes] was refused, such as for its condition. Nothing was written.
	ErrWriteRefused = errors.New("write of the caller refused")
	// ErrInvalidWrite: one of [Commit.Writes] cannot be part of a commit. Nothing was written.
	ErrInvalidWrite = errors.New("invalid write")
	// ErrInvalidCommand: a command id is too long or not UTF-8. Nothing was written.
	ErrInvalidCommand = errors.New("invalid command id")
	// ErrEventType: [Config.EventType] could not tell the type of an event.
	ErrEventType = errors.New("unknown event type")
	// ErrNotCovered: events cannot be truncated because no snapshot stands for them. Nothing was removed.
	ErrNotCovered = errors.New("not covered by a snapshot")
	// ErrNoEvents: a commit without events. Nothing was written.
	ErrNoEvents = errors.New("no events in the commit")
	// ErrInvalidEvent: an event has text that is not UTF-8. Nothing was written.
	ErrInvalidEvent = errors.New("invalid event")
	// ErrEncoding: a payload cannot be encoded, and then nothing was written, or not decoded.
	ErrEncoding = errors.New("payload cannot be encoded or decoded")
	// ErrKeyDestroyed: a payload was encrypted with a key that has been destroyed since, so that it can never
	// be read again; or an event of such an aggregate was to be written, and nothing was.
	ErrKeyDestroyed = errors.New("encryption key destroyed")
	// ErrCorruptItem: an item of the store is missing or cannot be read.
	ErrCorruptItem = errors.New("corrupt item")
	// ErrThrottled: DynamoDB refused for want of capacity, or because other transactions
	// were under way on the same items, longer than [Config.RetryBudget]. Nothing was
	// written.
	ErrThrottled = errors.New("throttled")
	// ErrTableMissing: a table or an index does not exist.
	ErrTableMissing = errors.New("table or index missing")
	// ErrAccess: credentials are missing or wrong, or lack a permission. Nothing was
	// written.
	ErrAccess = errors.New("access to DynamoDB denied")
	// ErrNoDescriptor: the tables were not made by [Create] and not taken by [Adopt].
	ErrNoDescriptor = errors.New("journal has no descriptor")
	// ErrDescriptorMismatch: the tables were made with other settings than given.
	ErrDescriptorMismatch = errors.New("journal was made with other settings")
	// ErrInvalidConfig: a setting that cannot work.
	ErrInvalidConfig = errors.New("invalid journal config")
)

// ConfigError is an [ErrInvalidConfig].
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string        { return fmt.Sprintf("journal config: %s %s", e.Field, e.Reason) }
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// NotFoundError is an [ErrNotFound].
type NotFoundError struct{ ID aggregate.ID }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("aggregate %q of type %q has no events", e.ID.Value, e.ID.Type)
}
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// ConflictError is an [ErrConflict].
type ConflictError struct {
	ID               aggregate.ID
	Expected, Actual uint64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("aggregate %s is at version %d, not at %d as expected: load it again and decide again", e.ID, e.Actual, e.Expected)
}
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// DeletedError is an [ErrDeleted]. Version is that of the last event that the aggregate had.
type DeletedError struct {
	ID      aggregate.ID
	Version uint64
	At      time.Time
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("aggregate %s was deleted at %s, after event %d: use another id", e.ID, e.At.Format(time.RFC3339), e.Version)
}
func (e *DeletedError) Is(target error) bool { return target == ErrDeleted }

// EventTypeError is an [ErrEventType]. Err is that of [Config.EventType].
type EventTypeError struct {
	ID     aggregate.ID
	Number uint64
	Err    error
}

func (e *EventTypeError) Error() string {
	return fmt.Sprintf("tell the type of event %d of %s: %v", e.Number, e.ID, e.Err)
}
func (e *EventTypeError) Is(target error) bool { return target == ErrEventType }
func (e *EventTypeError) Unwrap() error        { return e.Err }

// TruncatedError is an [ErrTruncated]. Events from Before on are there, or none if it is beyond the last.
type TruncatedError struct {
	ID     aggregate.ID
	Before uint64
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("events of %s before %d were removed: start from there, or from a snapshot", e.ID, e.Before)
}
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// DuplicateCommandError is an [ErrDuplicateCommand]. CommitID, First and Version are those of the commit that was
// written the first time: First and Version are the numbers of its first and last event. A command without events has a
// First that is Version+1.
type DuplicateCommandError struct {
	ID                  aggregate.ID
	CommandID, CommitID string
	First, Version      uint64
}

func (e *DuplicateCommandError) Error() string {
	return fmt.Sprintf("append to %s, nothing written: command %q was executed before, by commit %s, which led to version %d",
		e.ID, e.CommandID, e.CommitID, e.Version)
}
func (e *DuplicateCommandError) Is(target error) bool { return target == ErrDuplicateCommand }

// WriteRefusedError is an [ErrWriteRefused]: DynamoDB refused [Commit.Writes][Index]. Code is that of the cancellation
// reason, "ConditionalCheckFailed" for a false condition, and Item the item as it is, if the write asks for it by
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
func (e *WriteRefusedError) Is(target error) bool { return target == ErrWriteRefused }

// OutcomeUnknownError is an [ErrOutcomeUnknown]. Give it to [Journal.Resolve]; another process can make one of its
// exported fields, Err apart.
type OutcomeUnknownError struct {
	ID        aggregate.ID
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

// TooLargeError is an [ErrTooLarge]. What says which item, or that it is the
// commit as a whole; Size and Limit are in bytes as DynamoDB counts them.
type TooLargeError struct {
	ID          aggregate.ID
	What        string
	Size, Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("append to %s: %s has %d bytes, DynamoDB allows %d: keep large data elsewhere and store a reference, or split the commit",
		e.ID, e.What, e.Size, e.Limit)
}
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// TooManyEventsError is an [ErrTooManyEvents].
//
// Limit is [MaxEvents] less what else the transaction has to hold.
type TooManyEventsError struct {
	ID           aggregate.ID
	Count, Limit int
}

func (e *TooManyEventsError) Error() string {
	return fmt.Sprintf("append to %s: %d events in one commit, the transaction has room for %d (of %d actions): split the decision",
		e.ID, e.Count, e.Limit, storage.MaxActions)
}
func (e *TooManyEventsError) Is(target error) bool { return target == ErrTooManyEvents }

// CorruptItemError is an [ErrCorruptItem] and names the item by its keys. Of an event whose place can still be
// told, Aggregate and Number are set, and of a head whose aggregate can be, Aggregate. Misplaced says of a head that
// [Journal.Heads] has met that it is not where its aggregate's is looked for; there may be another one there.
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
func (e *CorruptItemError) Is(target error) bool { return target == ErrCorruptItem }

// EncodingError is an [ErrEncoding] and says which encoding failed with which payload. Err is the encoding's error, or
// says that [Config.Encodings] has none of that name.
type EncodingError struct {
	Place
	Encoding string
	Err      error
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("%s: encoding %q: %v", e.Place, e.Encoding, e.Err)
}
func (e *EncodingError) Is(target error) bool { return target == ErrEncoding }
func (e *EncodingError) Unwrap() error        { return e.Err }

// KeyDestroyedError is an [ErrKeyDestroyed]. Encodings give it, inside an [*EncodingError].
type KeyDestroyedError struct{ ID aggregate.ID }

func (e *KeyDestroyedError) Error() string {
	return fmt.Sprintf("the key of %s was destroyed: what it encrypted cannot be read any more, nor can events be added; begin an aggregate with another id", e.ID)
}
func (e *KeyDestroyedError) Is(target error) bool { return target == ErrKeyDestroyed }

// DescriptorMismatchError is an [ErrDescriptorMismatch].
type DescriptorMismatchError struct {
	Table                string
	Field, Stored, Given string
}

func (e *DescriptorMismatchError) Error() string {
	return fmt.Sprintf("table %q was made with %s %s, the config says %s: correct the config, or use another table",
		e.Table, e.Field, e.Stored, e.Given)
}
func (e *DescriptorMismatchError) Is(target error) bool { return target == ErrDescriptorMismatch }

// Explain gives an error of the SDK the sentinels of this package, such as
// [ErrTableMissing]; the SDK's error stays in the chain. It is for packages that use
// other tables of the store.
func Explain(err error, table string) error { return classify(err, table) }

func classify(err error, table string) error {
	if err == nil {
		return nil
	}
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing), isIndexMissing(err):
		return fmt.Errorf("%w: %q (journal.Create makes what is missing of a journal): %w", ErrTableMissing, table, err)
	case isAccess(err):
		return fmt.Errorf("%w: check the credentials, the region and the permissions on table %q: %w", ErrAccess, table, err)
	case isThrottle(err):
		return fmt.Errorf("%w: table %q: try again later, or give it more capacity: %w", ErrThrottled, table, err)
	default:
		return err
	}
}

// isIndexMissing goes by DynamoDB's text: the error has no type or code of its own.
func isIndexMissing(err error) bool {
	return code(err) == "ValidationException" && strings.Contains(err.Error(), "does not have the specified index")
}

func isAccess(err error) bool {
	switch code(err) {
	case "AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "MissingAuthenticationTokenException",
		"MissingAuthenticationToken", "InvalidSignatureException", "IncompleteSignatureException", "ExpiredTokenException",
		"InvalidClientTokenId", "NotAuthorized", "OptInRequired", "UnauthorizedException":
		return true
	case "":
		// The SDK has no type for credentials that cannot be had; its text is all there is.
		return !isContext(err) && unsent(err) && strings.Contains(err.Error(), "get credentials")
	}
	return false
}

func isDial(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// unsent tells that a request never left this process, so that it cannot have had
// an effect.
func unsent(err error) bool {
	if isDial(err) {
		return true
	}
	var operation *smithy.OperationError
	var send *smithyhttp.RequestSendError
	var response *smithyhttp.ResponseError
	return errors.As(err, &operation) && !errors.As(err, &send) && !errors.As(err, &response)
}

func isThrottle(err error) bool {
	switch code(err) {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded",
		"TooManyRequestsException", "LimitExceededException", "TransactionConflictException":
		return true
	}
	var canceled *types.TransactionCanceledException
	return errors.As(err, &canceled) && slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
		switch aws.ToString(r.Code) {
		case "ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict":
			return true
		}
		return false
	})
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
