package tracing

import (
	"context"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/repository"
)

// Parts are [repository.Parts] with a span for each Execute. The span names all aggregates, and the
// handling of the events is linked to it.
type Parts struct {
	parts  *repository.Parts
	config Config
}

// NewParts makes [Parts] of those without spans.
func NewParts(parts *repository.Parts, config Config) Parts { return Parts{parts, config} }

// Execute is [repository.Parts.Execute] in a span, one for all attempts.
func (parts Parts) Execute(ctx context.Context, decide func() error, given ...repository.Option) (err error) {
	if decide == nil {
		return parts.parts.Execute(ctx, nil, given...) // which refuses it
	}
	propagator := parts.config.propagator()
	var types, aggregates []string
	for _, p := range parts.parts.Results() {
		aggregates, types = append(aggregates, p.ID.String()), append(types, p.ID.Type)
	}
	ctx = withParent(ctx, propagator, aggregate.MetadataFromContext(ctx))
	ctx, span := parts.config.tracer().Start(ctx, "commit "+strings.Join(once(types), ", "), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		system, semconv.MessagingOperationName("commit"), semconv.MessagingOperationTypeSend, aggregatesKey.StringSlice(aggregates),
	))
	ctx = withTrace(ctx, propagator)
	spanned(span, func() {
		decisions := 0
		err = parts.parts.Execute(ctx, func() error {
			decisions++
			return decide()
		}, given...)
		span.SetAttributes(decisionsKey.Int(decisions))
		if refused, ok := err.(*repository.RefusedError); ok { //nolint:errorlint // one inside another error is that of another call
			span.RecordError(refused.Err)
			span.SetAttributes(outcomeKey.String("refused"))
			return
		}
		parts.note(span, err)
	})
	return err
}

// note says in a span what has become of a commit to several aggregates.
func (parts Parts) note(span trace.Span, err error) {
	var events []string
	repeated := false
	for _, p := range parts.parts.Results() {
		events = append(events, p.EventTypes...)
		repeated = repeated || p.Repeated
	}
	noteCommit(span, events, repeated, err)
}
