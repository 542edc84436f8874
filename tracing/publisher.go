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

// Publisher is a message.Publisher with spans, which the messages lead to. It is as safe for
// concurrent use as the one below it.
type Publisher struct {
	message.Publisher
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// NewPublisher makes a [Publisher] of one without spans, as a rule a [publisher.Publisher]. A
// router takes it as a decorator of all its publishers:
//
//	router.AddPublisherDecorators(func(p message.Publisher) (message.Publisher, error) {
//		return tracing.NewPublisher(p, config), nil
//	})
func NewPublisher(p message.Publisher, config Config) *Publisher {
	return &Publisher{Publisher: p, tracer: config.tracer(), propagator: config.propagator()}
}

// Publish publishes copies of the messages that carry the span, in one call, with the contexts that
// the messages have. As a rule they are all of one request or handling, and share a span, which is
// the child of its span. Those of several have one for each. A message whose context has no span
// goes on with the one that its metadata carries, if any.
//
// With a [*publisher.PublishError], only spans with messages that are not written, or perhaps not,
// are errors.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 || slices.Contains(messages, nil) {
		return p.Publisher.Publish(topic, messages...) // which refuses nil
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

// publish starts the spans one inside the other, as all of them take part in the one call.
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

// carrying returns the metadata of a message with a span in it, and nothing of another span.
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

// parcel is those messages of a Publish that share a span.
type parcel struct {
	ctx     context.Context // of the first
	indexes []int
}

// parent is what a span context is known by; itself, it cannot be a key of a map.
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

// failed reports whether the error of a Publish is one of these messages.
func (p *parcel) failed(err error) bool {
	var some *publisher.PublishError
	if !errors.As(err, &some) {
		return true
	}
	lost := append(some.NotWritten(), some.Unknown()...)
	return slices.ContainsFunc(p.indexes, func(i int) bool { return slices.Contains(lost, i) })
}
