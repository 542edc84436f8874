package publisher

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Errors of this package, for errors.Is. The typed errors below are for errors.As.
var (
	// ErrPublisherClosed reports that Close was called. The messages that it is
	// reported for were not written.
	ErrPublisherClosed = errors.New("publisher is closed: make a new one")
	// ErrCloseTimeout: Close has cut off commits that took longer than [Config.CloseTimeout]. Their
	// Publish calls have returned errors.
	ErrCloseTimeout = errors.New("publisher closed before all commits were done")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("publisher config: %s %s", e.Field, e.Reason)
}

// TopicError reports a topic that cannot be the name of an aggregate type. Nothing was written.
type TopicError struct {
	Topic  string
	Reason string
}

func (e *TopicError) Error() string {
	return fmt.Sprintf("invalid topic %s, which is to name an aggregate type: %s", quote(e.Topic), e.Reason)
}

// MessageError reports a message that can never be published as it is, for the reason Err. Nothing
// of its Publish was written.
type MessageError struct {
	Topic string
	Index int // of the message in Publish's arguments
	UUID  string
	Err   error
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("publish to %s, nothing written: message %d (UUID %s): %v", quote(e.Topic), e.Index, quote(e.UUID), e.Err)
}
func (e *MessageError) Unwrap() error { return e.Err }

// PublishError says that some messages of a Publish are not written. It wraps an [*AppendError] for
// each aggregate that failed. The messages of other aggregates are written.
type PublishError struct {
	Topic  string
	Failed []*AppendError
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
	return fmt.Sprintf("publish to %s: %s", quote(e.Topic), strings.Join(texts, "; "))
}

// Unwrap returns the errors of the aggregates.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, failed := range e.Failed {
		errs[i] = failed
	}
	return errs
}

// NotWritten returns the indexes in Publish's arguments of the messages that are certainly not
// written, in ascending order. They can be published again.
func (e *PublishError) NotWritten() []int {
	return e.collect(func(failed *AppendError) []int { return failed.NotWritten })
}

// Unknown returns the indexes in Publish's arguments of the messages that may or may not be
// written, in ascending order. They may be written twice if they are published again.
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

// AppendError says that messages are not written to one aggregate, for the reason Err: an error of
// the journal or [ErrPublisherClosed].
type AppendError struct {
	Aggregate aggregate.ID
	// Written, Unknown and NotWritten are the indexes, in Publish's arguments, of the aggregate's
	// messages: first those that are written, then those that may be, then those that are not.
	Written, Unknown, NotWritten []int
	// Attempts are the commits that the messages of Unknown may be in; at most one of them is or
	// will be written. Call [journal.Journal.Resolve] for each before you publish the messages
	// again.
	Attempts []*journal.OutcomeUnknownError
	Err      error
}

func (e *AppendError) Error() string {
	return fmt.Sprintf("append to %s (messages written: %d, perhaps written: %d, not written: %d): %v",
		quote(e.Aggregate.String()), len(e.Written), len(e.Unknown), len(e.NotWritten), e.Err)
}
func (e *AppendError) Unwrap() error { return e.Err }

// quote keeps an error readable whatever it is about: control characters are escaped and a long
// text is cut.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
}
