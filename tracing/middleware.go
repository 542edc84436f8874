package tracing

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber"
)

// Middleware returns a middleware that starts a span for each handling of a message. The span is
// linked to the commit of the event, or is its child with [Config].ContinueTrace. The context of
// the message has the span, and its metadata carries the span into commits. Add the middleware with
// Router.AddMiddleware or Handler.AddMiddleware.
//
// A message that is nacked is delivered again, and then has another span. Its attribute
// millrace.delivery.attempt is one higher; see [subscriber.AttemptFromContext]. Some middlewares
// call a handler several times within one delivery, such as Watermill's Retry. If such a middleware
// is added after this one, there is one span. If it is added before, there is one span for each
// call, with the same attempt.
//
// Messages of other subscribers also have spans. These lack the consumer group and the attributes
// of an aggregate's event.
func Middleware(config Config) message.HandlerMiddleware {
	m := &middleware{config: config, tracer: config.tracer(), propagator: config.propagator()}
	return m.wrap
}

type middleware struct {
	config     Config
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

func (m *middleware) wrap(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) (produced []*message.Message, err error) {
		before := msg.Context()
		ctx, span := m.start(before, msg)
		spanned(span, func() {
			// A middleware that runs the handler again must not find the span of the run before.
			defer msg.SetContext(before)
			msg.SetContext(withTrace(ctx, m.propagator))
			if produced, err = next(msg); err != nil {
				fail(span, err)
			}
		})
		return withSpan(produced, span), err
	}
}

// start begins the span of a handling.
func (m *middleware) start(ctx context.Context, msg *message.Message) (context.Context, trace.Span) {
	ctx, commit := carriedBy(ctx, m.propagator, msg.Metadata)
	topic := message.SubscribeTopicFromCtx(ctx)
	attributes := make([]attribute.KeyValue, 0, 12)
	if record, ok := subscriber.RecordFromContext(ctx); ok {
		topic = record.Aggregate.Type
		attributes = append(attributes, system, aggregateIDKey.String(record.Aggregate.Value), eventTypeKey.String(record.EventType),
			eventNumberKey.Int64(int64(record.Number)))
	}
	if attempt, ok := subscriber.AttemptFromContext(ctx); ok {
		attributes = append(attributes, attemptKey.Int(attempt))
	}
	attributes = append(attributes, semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(topic), semconv.MessagingMessageID(msg.UUID), semconv.MessagingMessageBodySize(len(msg.Payload)))
	optional := func(key attribute.Key, value string) {
		if value != "" {
			attributes = append(attributes, key.String(value))
		}
	}
	group, _ := subscriber.ConsumerGroupFromContext(ctx)
	optional(semconv.MessagingConsumerGroupNameKey, group)
	optional(semconv.MessagingMessageConversationIDKey, msg.Metadata.Get(aggregate.CorrelationIDKey))
	optional(handlerKey, message.HandlerNameFromCtx(ctx))
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...)}
	switch {
	case !commit.IsValid():
	case m.config.ContinueTrace:
		ctx = trace.ContextWithRemoteSpanContext(ctx, commit)
	default:
		options = append(options, trace.WithLinks(trace.Link{SpanContext: commit}))
	}
	return m.tracer.Start(ctx, "process "+topic, options...)
}

// withSpan sets the span of messages that have none, so that the span of their Publish is its
// child.
func withSpan(produced []*message.Message, span trace.Span) []*message.Message {
	for _, msg := range produced {
		if msg != nil && !trace.SpanContextFromContext(msg.Context()).IsValid() {
			msg.SetContext(trace.ContextWithSpan(msg.Context(), span))
		}
	}
	return produced
}
