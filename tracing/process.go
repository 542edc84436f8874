package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// StepMiddleware returns a function for process.Config.Middleware, which adds a span to each step
// of a process manager. The events, commands and timeouts of the step carry that span.
//
// The step of an event is a child of the span of the context, which is usually the span of
// [Middleware]. The step of a timeout has its own trace, with a link to the step that set the
// timeout. With [Config].ContinueTrace it is a child of that step. If the context has a span, the
// step is a child of it.
func StepMiddleware(config Config) func(ctx context.Context, id aggregate.ID, in process.Input, next func(context.Context) error) error {
	tracer, propagator := config.tracer(), config.propagator()
	return func(ctx context.Context, id aggregate.ID, in process.Input, next func(context.Context) error) (err error) {
		attributes := []attribute.KeyValue{
			system, semconv.MessagingOperationName("step"), semconv.MessagingOperationTypeSend,
			semconv.MessagingDestinationName(id.Type), aggregateIDKey.String(id.Value),
		}
		if in.Timeout != "" {
			attributes = append(attributes, timeoutKey.String(in.Timeout))
		} else {
			attributes = append(attributes, eventTypeKey.String(in.Type), semconv.MessagingMessageID(in.ID))
		}
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...)}
		extracted, cause := carriedBy(ctx, propagator, in.Metadata)
		switch {
		case trace.SpanContextFromContext(ctx).IsValid() || !cause.IsValid():
		case config.ContinueTrace:
			ctx = trace.ContextWithRemoteSpanContext(extracted, cause)
		default:
			ctx, options = extracted, append(options, trace.WithLinks(trace.Link{SpanContext: cause}))
		}
		ctx, span := tracer.Start(ctx, "step "+id.Type, options...)
		spanned(span, func() {
			err = next(withTrace(ctx, propagator))
			switch {
			case err == nil:
			case errors.Is(err, process.ErrIgnored):
				span.SetAttributes(outcomeKey.String("nothing"))
			case errors.Is(err, journal.ErrOutcomeUnknown):
				span.SetAttributes(outcomeKey.String("unknown"))
				fail(span, err)
			default:
				span.SetAttributes(outcomeKey.String("failed"))
				fail(span, err)
			}
		})
		return err
	}
}
