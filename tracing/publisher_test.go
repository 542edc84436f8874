package tracing_test

import (
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/tracing"
)

// publish returns the publisher of a world with spans.
func publish(t *testing.T, w *world) *tracing.Publisher {
	t.Helper()
	p, err := publisher.NewPublisher(publisher.Config{Journal: w.journal}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return tracing.NewPublisher(p, w.config)
}

func deposit(id string) *message.Message {
	msg := message.NewMessage("event-"+id, []byte(`{"Amount":1}`))
	msg.Metadata.Set(publisher.NameKey, Deposited{}.EventType())
	msg.Metadata.Set(publisher.AggregateIDKey, id)
	return msg
}

func TestAHandlingIsLinkedToThePublishOfItsMessage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	request, requested := w.begin("request")
	msg := deposit("42")
	msg.SetContext(request)
	msg.Metadata.Set(aggregate.CorrelationIDKey, "request-1")
	before := msg.CopyWithContext()

	require.NoError(t, publish(t, w).Publish("account", msg))
	w.run(func(*message.Message) error { return nil }, tracing.Middleware(w.config))

	published := w.span("publish account")
	requireChild(t, requested, published)
	requireLink(t, published, w.span("process account"))
	assert.Equal(t, "request-1", w.stored("42").CorrelationID())
	assert.Equal(t, trace.SpanKindProducer, published.SpanKind())
	assert.Equal(t, map[attribute.Key]any{
		"messaging.system": "millrace", "messaging.operation.name": "publish", "messaging.operation.type": "send",
		"messaging.destination.name": "account", "messaging.message.id": "event-42", "millrace.aggregate.id": "42",
	}, attributesOf(published))
	assert.True(t, before.Equals(msg), "the message of the caller stays as it was")
}

func TestMessagesOfOneContextShareASpanAndOthersDoNot(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, firstSpan := w.begin("first")
	second, secondSpan := w.begin("second")
	messages := []*message.Message{deposit("1"), deposit("2"), deposit("3")}
	messages[0].SetContext(first)
	messages[1].SetContext(second)
	messages[2].SetContext(first)
	require.NoError(t, publish(t, w).Publish("account", messages...))

	byParent := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, span := range w.named("publish account", 2) {
		byParent[span.Parent().SpanID()] = span
	}
	ofFirst, ofSecond := byParent[firstSpan.SpanContext().SpanID()], byParent[secondSpan.SpanContext().SpanID()]
	require.NotNil(t, ofFirst)
	require.NotNil(t, ofSecond)
	assert.Equal(t, int64(2), attributesOf(ofFirst)["messaging.batch.message_count"])
	assert.NotContains(t, attributesOf(ofSecond), attribute.Key("messaging.batch.message_count"))
	assert.Equal(t, traceparent(ofFirst), w.stored("1")["traceparent"])
	assert.Equal(t, traceparent(ofSecond), w.stored("2")["traceparent"])
	assert.Equal(t, traceparent(ofFirst), w.stored("3")["traceparent"])
}

func TestAMessageGoesOnWithTheTraceThatItCarries(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, requested := w.begin("request")
	msg := deposit("42")
	msg.Metadata.Set("traceparent", traceparent(requested))
	require.NoError(t, publish(t, w).Publish("account", msg))

	published := w.span("publish account")
	requireChild(t, requested, published)
	assert.Equal(t, traceparent(published), w.stored("42")["traceparent"])

	request, _ := w.begin("another request") // without a tracestate
	msg = deposit("43")
	msg.SetContext(request)
	msg.Metadata.Set("traceparent", traceparent(requested))
	msg.Metadata.Set("tracestate", "vendor=old")
	require.NoError(t, publish(t, w).Publish("account", msg))
	assert.NotContains(t, w.stored("43"), "tracestate", "the state of another trace must not go with this one")
}

func TestOnlyTheSpansOfMessagesThatFailedAreErrors(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, _ := w.begin("first")
	second, secondSpan := w.begin("second")
	written, refused := deposit("1"), deposit("2")
	written.SetContext(first)
	refused.SetContext(second)
	publisher.SetExpectedVersion(refused, 7)

	err := publish(t, w).Publish("account", written, refused)

	var some *publisher.PublishError
	require.ErrorAs(t, err, &some)
	for _, span := range w.named("publish account", 2) {
		if span.Parent().SpanID() == secondSpan.SpanContext().SpanID() {
			assert.Equal(t, codes.Error, span.Status().Code)
			assert.Equal(t, "conflict", attributesOf(span)["error.type"])
		} else {
			assert.Equal(t, codes.Unset, span.Status().Code)
		}
	}
}

func TestAPublishThatIsRefusedAsAWholeIsAnError(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := publish(t, w)

	require.ErrorAs(t, p.Publish("account\n", deposit("42")), new(*publisher.TopicError))
	assert.Equal(t, codes.Error, w.span("publish account\n").Status().Code)

	require.ErrorAs(t, p.Publish("account", nil), new(*publisher.MessageError))
	require.NoError(t, p.Publish("account"))
	assert.Len(t, w.spans.Started(), 1, "there is nothing to publish")
}

// unwilling is a publisher that refuses everything.
type unwilling struct{ err error }

func (u unwilling) Publish(string, ...*message.Message) error { return u.err }
func (u unwilling) Close() error                              { return u.err }

func TestThePublisherBelowDecidesOnErrorsAndCloses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	err := errors.New("out of paper")
	p := tracing.NewPublisher(unwilling{err}, w.config)

	assert.Equal(t, err, p.Publish("account", deposit("42")))
	assert.Equal(t, err, p.Close())
	assert.Equal(t, codes.Error, w.span("publish account").Status().Code)
}
