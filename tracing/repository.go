package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Repository wraps a [repository.Repository], and adds a span to each Execute and Save. The events
// that they write carry the span. It is safe for concurrent use.
type Repository[S any] struct {
	*repository.Repository[S]
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// NewRepository returns a [Repository] that adds spans to r.
func NewRepository[S any](r *repository.Repository[S], config Config) *Repository[S] {
	return &Repository[S]{Repository: r, tracer: config.tracer(), propagator: config.propagator()}
}

// Execute calls [repository.Repository.Execute] in a span, which includes all attempts.
func (r *Repository[S]) Execute(
	ctx context.Context, id string, decide aggregate.Decision[S], given ...repository.Option,
) (a repository.Aggregate[S], err error) {
	begun, err := r.NewAggregate(id)
	if err != nil || decide == nil {
		return r.Repository.Execute(ctx, id, decide, given...) // refuses it
	}
	ctx, span := r.start(ctx, begun.ID)
	spanned(span, func() {
		var decisions int
		var events aggregate.Events[S]
		a, err = r.Repository.Execute(ctx, id, func(state S) (aggregate.Events[S], error) {
			decisions++
			var refused error
			events, refused = decide(state)
			return events, refused
		}, given...)
		span.SetAttributes(decisionsKey.Int(decisions))
		// A wrapped RefusedError is the error of another call, such as one in a function passed to
		// Writes.
		if refused, ok := err.(*repository.RefusedError); ok { //nolint:errorlint // see above
			span.RecordError(refused.Err)
			span.SetAttributes(outcomeKey.String("refused"))
			return
		}
		note(span, a, events, err)
	})
	return a, err
}

// Save calls [repository.Repository.Save] in a span.
func (r *Repository[S]) Save(
	ctx context.Context, a repository.Aggregate[S], events aggregate.Events[S], given ...repository.Option,
) (next repository.Aggregate[S], err error) {
	ctx, span := r.start(ctx, a.ID)
	spanned(span, func() {
		next, err = r.Repository.Save(ctx, a, events, given...)
		note(span, next, events, err)
	})
	return next, err
}

// start begins the span of a commit, and returns the context for the commit.
func (r *Repository[S]) start(ctx context.Context, id aggregate.ID) (context.Context, trace.Span) {
	ctx = withParent(ctx, r.propagator, aggregate.MetadataFromContext(ctx))
	ctx, span := r.tracer.Start(ctx, "commit "+id.Type, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		system, semconv.MessagingOperationName("commit"), semconv.MessagingOperationTypeSend,
		semconv.MessagingDestinationName(id.Type), aggregateIDKey.String(id.Value),
	))
	return withTrace(ctx, r.propagator), span
}

// note records in a span the outcome of a commit to one aggregate.
func note[S any](span trace.Span, a repository.Aggregate[S], events aggregate.Events[S], err error) {
	if !span.IsRecording() {
		return
	}
	types := make([]string, len(events))
	for i, event := range events {
		types[i] = event.EventType()
	}
	noteCommit(span, types, a.Repeated, err)
	if err == nil && !a.Repeated {
		span.SetAttributes(aggregateVersionKey.Int64(int64(a.Version)))
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
