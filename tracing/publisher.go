package tracing

import (
	"context"
	"errors"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/publisher"
)

// Publisher wraps a message.Publisher, and adds spans to Publish. The messages carry the spans. It
// is safe for concurrent use if the wrapped publisher is.
type Publisher struct {
	message.Publisher
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// NewPublisher returns a [Publisher] that adds spans to p, which is usually a
// [publisher.Publisher]. It can decorate all publishers of a router:
//
//	router.AddPublisherDecorators(func(p message.Publisher) (message.Publisher, error) {
//		return tracing.NewPublisher(p, config), nil
//	})
func NewPublisher(p message.Publisher, config Config) *Publisher {
	return &Publisher{Publisher: p, tracer: config.tracer(), propagator: config.propagator()}
}

// Publish publishes copies of the messages, which carry the span, in one call of the wrapped
// publisher. The span is a child of the span in the messages' contexts. If a context has no span,
// it is a child of the span in the message's metadata. Usually all messages belong to one request
// or handling, and share a span. Otherwise there is one span for each of their spans.
//
// After a [*publisher.PublishError], only spans of messages that are not written, or whose outcome
// is unknown, have the status error.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 || slices.Contains(messages, nil) {
		return p.Publisher.Publish(topic, messages...) // refuses nil
	}
	var parcels []*parcel
	byParent := map[parent]*parcel{}
	copies := make([]*message.Message, len(messages))
	for i, msg := range messages {
		ctx := withParent(msg.Context(), p.propagator, msg.Metadata)
		of := parentOf(ctx)
		if byParent[of] == nil {
			byParent[of] = &parcel{ctx: ctx}
			parcels = append(parcels, byParent[of])
		}
		byParent[of].indexes = append(byParent[of].indexes, i)
		copies[i] = msg.CopyWithContext()
	}
	return p.publish(topic, copies, parcels)
}

// publish starts the spans one inside the other, so that all of them include the call.
func (p *Publisher) publish(topic string, messages []*message.Message, parcels []*parcel) (err error) {
	if len(parcels) == 0 {
		return p.Publisher.Publish(topic, messages...)
	}
	first := parcels[0]
	span := first.start(p.tracer, topic, messages)
	spanned(span, func() {
		for _, i := range first.indexes {
			messages[i].Metadata = p.carrying(messages[i], span)
		}
		if err = p.publish(topic, messages, parcels[1:]); err != nil && first.failed(err) {
			fail(span, err)
		}
	})
	return err
}

// carrying returns the metadata of a message with a span, without the keys of another span.
func (p *Publisher) carrying(msg *message.Message, span trace.Span) message.Metadata {
	carried := propagation.MapCarrier{}
	p.propagator.Inject(trace.ContextWithSpan(msg.Context(), span), carried)
	if len(carried) == 0 {
		return msg.Metadata
	}
	for _, key := range p.propagator.Fields() {
		delete(msg.Metadata, key)
	}
	for key, value := range carried {
		msg.Metadata[key] = value
	}
	return msg.Metadata
}

// parcel holds the messages of a Publish that share a span.
type parcel struct {
	ctx     context.Context // context of the first message
	indexes []int
}

// parent identifies a span. Unlike trace.SpanContext it can be a key of a map.
type parent struct {
	trace trace.TraceID
	span  trace.SpanID
}

func parentOf(ctx context.Context) parent {
	of := trace.SpanContextFromContext(ctx)
	return parent{of.TraceID(), of.SpanID()}
}

func (p *parcel) start(tracer trace.Tracer, topic string, messages []*message.Message) trace.Span {
	attributes := []attribute.KeyValue{
		system, semconv.MessagingOperationName("publish"), semconv.MessagingOperationTypeSend, semconv.MessagingDestinationName(topic),
	}
	if only := messages[p.indexes[0]]; len(p.indexes) > 1 {
		attributes = append(attributes, semconv.MessagingBatchMessageCount(len(p.indexes)))
	} else {
		attributes = append(attributes, semconv.MessagingMessageID(only.UUID))
		if id := only.Metadata.Get(publisher.AggregateIDKey); id != "" {
			attributes = append(attributes, aggregateIDKey.String(id))
		}
	}
	_, span := tracer.Start(p.ctx, "publish "+topic, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...))
	return span
}

// failed reports whether the error of a Publish concerns these messages.
func (p *parcel) failed(err error) bool {
	var some *publisher.PublishError
	if !errors.As(err, &some) {
		return true
	}
	lost := append(some.NotWritten(), some.Unknown()...)
	return slices.ContainsFunc(p.indexes, func(i int) bool { return slices.Contains(lost, i) })
}
