package tracing

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// CommitMiddleware returns a middleware that adds a span to each commit of a repository, and to
// each commit of several aggregates. The events carry the span. Set it as CommitMiddleware of a
// millrace.Config for all repositories of an App, or as Middleware of a repository.Config.
func CommitMiddleware(config Config) repository.Middleware {
	tracer, propagator := config.tracer(), config.propagator()
	return func(ctx context.Context, call *repository.Call, next func(context.Context) error) (err error) {
		var types, aggregates []string
		for _, id := range call.Aggregates {
			types, aggregates = append(types, id.Type), append(aggregates, id.String())
		}
		attributes := []attribute.KeyValue{system, semconv.MessagingOperationName("commit"), semconv.MessagingOperationTypeSend}
		if len(call.Aggregates) == 1 {
			attributes = append(attributes, semconv.MessagingDestinationName(types[0]), aggregateIDKey.String(call.Aggregates[0].Value))
		} else {
			attributes = append(attributes, aggregatesKey.StringSlice(aggregates))
		}
		ctx = withParent(ctx, propagator, aggregate.MetadataFromContext(ctx))
		ctx, span := tracer.Start(ctx, "commit "+strings.Join(once(types), ", "), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...))
		spanned(span, func() {
			err = next(withTrace(ctx, propagator))
			if call.Decisions > 0 {
				span.SetAttributes(decisionsKey.Int(call.Decisions))
			}
			// A wrapped RefusedError is the error of another call.
			if refused, ok := err.(*repository.RefusedError); ok { //nolint:errorlint // see above
				span.RecordError(refused.Err)
				span.SetAttributes(outcomeKey.String("refused"))
				return
			}
			noteCommit(span, call.EventTypes, call.Repeated, err)
			if err == nil && !call.Repeated && len(call.Aggregates) == 1 {
				span.SetAttributes(aggregateVersionKey.Int64(int64(call.Version))) //nolint:gosec // a number of events
			}
		})
		return err
	}
}

// noteCommit records in a span the outcome of a commit with events of some types.
func noteCommit(span trace.Span, events []string, repeated bool, err error) {
	switch {
	case err == nil && repeated || errors.As(err, new(*journal.DuplicateCommandError)):
		span.SetAttributes(outcomeKey.String("repeated"))
	case errors.Is(err, journal.ErrOutcomeUnknown):
		span.SetAttributes(outcomeKey.String("unknown"))
		fail(span, err)
	case err != nil:
		span.SetAttributes(outcomeKey.String("failed"))
		fail(span, err)
	case len(events) == 0:
		span.SetAttributes(outcomeKey.String("nothing"))
	default:
		span.SetAttributes(outcomeKey.String("committed"), eventTypesKey.StringSlice(once(events)))
		if len(events) > 1 {
			span.SetAttributes(semconv.MessagingBatchMessageCount(len(events)))
		}
	}
}

// once returns the names without repetitions.
func once(names []string) (different []string) {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			different = append(different, name)
		}
	}
	return different
}
