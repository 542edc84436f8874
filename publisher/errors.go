package publisher

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
)

// Errors of this package, for errors.Is. The typed errors below are for errors.As.
var (
	// ErrPublisherClosed reports that Close was called. The messages in question were not written.
	ErrPublisherClosed = errors.New("publisher is closed: make a new one")
	// ErrCloseTimeout reports that Close has canceled commits that took longer than
	// [Config].CloseTimeout. Their Publish calls have returned errors, so nothing is lost: a
	// handler gets its message again, and a process manager sends its commands again.
	ErrCloseTimeout = errors.New("publisher closed before all commits were done: their Publish calls have returned errors")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("publisher config: %s %s", e.Field, e.Reason)
}

// TopicError reports a topic that is not a valid aggregate type. Nothing was written.
type TopicError struct {
	Topic  string // the topic that was refused
	Reason string // why
}

func (e *TopicError) Error() string {
	return fmt.Sprintf("invalid topic %s: a topic must be a valid aggregate type: %s", printable.Quote(e.Topic), e.Reason)
}

// MessageError reports an invalid message. Err is the reason. Nothing of its Publish was written,
// and a repetition would fail again.
type MessageError struct {
	Topic string // the topic of Publish
	Index int    // index of the message in the arguments of Publish
	UUID  string // the UUID of the message
	Err   error
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("publish to %s, nothing written: message %d (UUID %s): %v", printable.Quote(e.Topic), e.Index, printable.Quote(e.UUID), e.Err)
}

// Unwrap returns the reason.
func (e *MessageError) Unwrap() error { return e.Err }

// PublishError reports that some messages of a Publish are not written. It wraps an [*AppendError]
// for each aggregate that failed. The messages of the other aggregates are written.
type PublishError struct {
	Topic  string         // the topic of Publish
	Failed []*AppendError // one error for each aggregate that failed
}

func (e *PublishError) Error() string {
	const most = 3
	texts := make([]string, 0, most+1)
	for i, failed := range e.Failed {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(e.Failed)-most))
			break
		}
		texts = append(texts, failed.Error())
	}
	return fmt.Sprintf("publish to %s: %s", printable.Quote(e.Topic), strings.Join(texts, "; "))
}

// Unwrap returns the errors of the aggregates.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, failed := range e.Failed {
		errs[i] = failed
	}
	return errs
}

// NotWritten returns the messages that are certainly not written, as indexes of the arguments of
// Publish in ascending order. They can be published again.
func (e *PublishError) NotWritten() []int {
	return e.collect(func(failed *AppendError) []int { return failed.NotWritten })
}

// Unknown returns the messages that may have been written, as indexes of the arguments of Publish
// in ascending order. If they are published again, they may be written twice; see
// [AppendError].Attempts.
func (e *PublishError) Unknown() []int {
	return e.collect(func(failed *AppendError) []int { return failed.Unknown })
}

func (e *PublishError) collect(of func(*AppendError) []int) []int {
	var all []int
	for _, failed := range e.Failed {
		all = append(all, of(failed)...)
	}
	slices.Sort(all)
	return all
}

// AppendError reports that messages of a Publish are not written to one aggregate.
type AppendError struct {
	Aggregate aggregate.ID // the aggregate of the messages
	// Written, Unknown and NotWritten are the messages of the aggregate that are written, that may
	// have been written, and that are not written, as indexes of the arguments of Publish.
	Written, Unknown, NotWritten []int
	// Attempts are the commits that may have written the messages of Unknown. At most one of them
	// is or will be written. Call [journal.Journal.Resolve] for each before you publish the
	// messages again.
	Attempts []*journal.OutcomeUnknownError
	// Err is the reason: an error of the journal or [ErrPublisherClosed].
	Err error
}

func (e *AppendError) Error() string {
	return fmt.Sprintf("append to %s (messages written: %d, perhaps written: %d, not written: %d): %v",
		e.Aggregate, len(e.Written), len(e.Unknown), len(e.NotWritten), e.Err)
}

// Unwrap returns the reason.
func (e *AppendError) Unwrap() error { return e.Err }
