package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/journal"
)

// Attributes that are not part of the semantic conventions.
const (
	aggregateIDKey      = attribute.Key("millrace.aggregate.id")
	aggregatesKey       = attribute.Key("millrace.aggregates")
	aggregateVersionKey = attribute.Key("millrace.aggregate.version")
	outcomeKey          = attribute.Key("millrace.commit.outcome")
	decisionsKey        = attribute.Key("millrace.commit.decisions")
	eventTypesKey       = attribute.Key("millrace.event.types")
	eventTypeKey        = attribute.Key("millrace.event.type")
	eventNumberKey      = attribute.Key("millrace.event.number")
	timeoutKey          = attribute.Key("millrace.process.timeout")
	attemptKey          = attribute.Key("millrace.delivery.attempt")
	handlerKey          = attribute.Key("watermill.handler")
)

var system = semconv.MessagingSystemKey.String("millrace")

// spanned runs work within a span. work records its own error. spanned ends the span, also if work
// panics.
func spanned(span trace.Span, work func()) {
	defer span.End() // it records a panic only if it is deferred directly
	returned := false
	defer func() {
		if !returned {
			span.SetStatus(codes.Error, "panic")
		}
	}()
	work()
	returned = true
}

// fail records the error of a failed operation in a span.
func fail(span trace.Span, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(errorType(err))
}

// errorTypes lists the names of errors. The first that matches applies. The end of the context
// comes after an unknown outcome, and before errors whose retries it has ended.
var errorTypes = []struct {
	is   func(error) bool
	name string
}{
	{sentinel(journal.ErrOutcomeUnknown), "outcome_unknown"},
	{sentinel(context.Canceled), "canceled"},
	{sentinel(context.DeadlineExceeded), "timeout"},
	{sentinel(journal.ErrConflict), "conflict"},
	{sentinel(journal.ErrThrottled), "throttled"},
	{sentinel(journal.ErrContended), "contended"},
	{sentinel(journal.ErrUnavailable), "unavailable"},
	{sentinel(journal.ErrNotFound), "not_found"},
	{typed[*journal.DeletedError], "deleted"},
	{typed[*journal.TruncatedError], "truncated"},
	{typed[*journal.DuplicateCommandError], "duplicate_command"},
	{typed[*journal.WriteRefusedError], "write_refused"},
	{typed[*journal.TooLargeError], "too_large"},
	{sentinel(journal.ErrInvalidCommit), "invalid_commit"},
	{sentinel(journal.ErrKeyDestroyed), "key_destroyed"},
	{typed[*journal.EncodingError], "encoding"},
	{typed[*journal.CorruptItemError], "corrupt_item"},
	{sentinel(journal.ErrTableMissing), "table_missing"},
	{sentinel(journal.ErrAccess), "access"},
}

func sentinel(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func typed[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

func errorType(err error) attribute.KeyValue {
	for _, known := range errorTypes {
		if known.is(err) {
			return semconv.ErrorTypeKey.String(known.name)
		}
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return semconv.ErrorType(err)
}
