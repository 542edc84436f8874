package tracing_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/tracing"
)

func requireLink(t *testing.T, to, from sdktrace.ReadOnlySpan) {
	t.Helper()
	require.Len(t, from.Links(), 1)
	link := from.Links()[0].SpanContext
	require.Equal(t, to.SpanContext().TraceID(), link.TraceID())
	require.Equal(t, to.SpanContext().SpanID(), link.SpanID())
}

func requireChild(t *testing.T, of, child sdktrace.ReadOnlySpan) {
	t.Helper()
	require.Equal(t, of.SpanContext().TraceID(), child.SpanContext().TraceID())
	require.Equal(t, of.SpanContext().SpanID(), child.Parent().SpanID())
}

func byAggregate(spans []sdktrace.ReadOnlySpan) map[any]sdktrace.ReadOnlySpan {
	byID := map[any]sdktrace.ReadOnlySpan{}
	for _, span := range spans {
		byID[attributesOf(span)["millrace.aggregate.id"]] = span
	}
	return byID
}

func TestAHandlingIsLinkedToTheCommitOfItsEvent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	request, requested := w.begin("request")
	request = aggregate.ContextWithMetadata(request, aggregate.Metadata{aggregate.CorrelationIDKey: "request-1"})

	_, err := w.accounts.Execute(request, "42", events(Deposited{100}, Withdrawn{30}))
	require.NoError(t, err)
	received := make(chan *message.Message, 2)
	w.run(func(msg *message.Message) error { received <- msg; return nil }, tracing.Middleware(w.config))

	commit := w.span("commit account")
	requireChild(t, requested, commit)
	assert.Equal(t, trace.SpanKindProducer, commit.SpanKind())
	assert.Equal(t, codes.Unset, commit.Status().Code)
	assert.Equal(t, map[attribute.Key]any{
		"messaging.system": "millrace", "messaging.operation.name": "commit", "messaging.operation.type": "send",
		"messaging.destination.name": "account", "messaging.batch.message_count": int64(2),
		"millrace.aggregate.id": "42", "millrace.aggregate.version": int64(2),
		"millrace.commit.outcome": "committed", "millrace.commit.decisions": int64(1),
		"millrace.event.types": []string{"account.deposited.v1", "account.withdrawn.v1"},
	}, attributesOf(commit))

	handled := w.named("process account", 2)
	for i, span := range handled {
		requireLink(t, commit, span)
		assert.Equal(t, trace.SpanKindConsumer, span.SpanKind())
		assert.False(t, span.Parent().IsValid(), "a handling has a trace of its own")
		msg := <-received
		assert.Equal(t, map[attribute.Key]any{
			"messaging.system": "millrace", "messaging.operation.name": "process", "messaging.operation.type": "process",
			"messaging.destination.name": "account", "messaging.consumer.group.name": "totals",
			"messaging.message.id": msg.UUID, "messaging.message.body.size": int64(len(msg.Payload)),
			"messaging.message.conversation_id": "request-1", "watermill.handler": "totals-handler",
			"millrace.aggregate.id": "42", "millrace.event.number": int64(i + 1),
			"millrace.event.type": msg.Metadata.Get("name"), "millrace.delivery.attempt": int64(1),
		}, attributesOf(span))
	}
	assert.NotEqual(t, handled[0].SpanContext().TraceID(), handled[1].SpanContext().TraceID())
}

func TestCommitsOfAHandlerGoOnWithItsSpan(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.plain, "42", events(Deposited{1}))
	w.run(func(msg *message.Message) error {
		if msg.Metadata.Get("aggregate_id") != "42" {
			return nil
		}
		if _, err := w.plain.Execute(msg.Context(), "plain", events(Deposited{1})); err != nil {
			return err
		}
		_, err := w.accounts.Execute(msg.Context(), "traced", events(Deposited{1}))
		return err
	}, tracing.Middleware(w.config))

	commit, byID := w.span("commit account"), byAggregate(w.named("process account", 3))
	assert.Empty(t, byID["42"].Links(), "its commit has no span")
	assert.Equal(t, traceparent(byID["42"]), w.stored("plain")["traceparent"])
	requireLink(t, byID["42"], byID["plain"])
	requireChild(t, byID["42"], commit)
	requireLink(t, commit, byID["traced"])
}

func TestContinueTraceMakesCommitAndHandlingsOneTrace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.ContinueTrace = true
	request, requested := w.begin("request")
	_, err := w.accounts.Execute(request, "42", events(Deposited{1}))
	require.NoError(t, err)
	w.run(func(msg *message.Message) error {
		if msg.Metadata.Get("aggregate_id") != "42" {
			return nil
		}
		_, err := w.accounts.Execute(msg.Context(), "43", events(Deposited{1}))
		return err
	}, tracing.Middleware(w.config))

	// The second handling can end before the one that led to it.
	handled, committed := byAggregate(w.named("process account", 2)), byAggregate(w.named("commit account", 2))
	requireChild(t, requested, committed["42"])
	requireChild(t, committed["42"], handled["42"])
	requireChild(t, handled["42"], committed["43"])
	requireChild(t, committed["43"], handled["43"])
	assert.Empty(t, handled["42"].Links())
}

func TestAHandlingIsAChildOfASpanThatItsContextHas(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
	testjournal.Execute(t, w.plain, "43", events(Deposited{1}))
	outer := func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			ctx, span := w.tracer.Tracer("test").Start(msg.Context(), "outer "+msg.Metadata.Get("aggregate_id"))
			defer span.End()
			msg.SetContext(ctx)
			return next(msg)
		}
	}
	w.run(func(*message.Message) error { return nil }, outer, tracing.Middleware(w.config))

	for _, span := range w.named("process account", 2) {
		id := attributesOf(span)["millrace.aggregate.id"].(string)
		requireChild(t, w.span("outer "+id), span)
		if id == "42" {
			requireLink(t, w.span("commit account"), span)
		} else {
			assert.Empty(t, span.Links(), "its commit has no span")
		}
	}
}

func TestMessagesThatAHandlerReturnsGoOnWithItsSpan(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
	router, sub := w.router()
	out := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router.AddPublisherDecorators(func(p message.Publisher) (message.Publisher, error) {
		return tracing.NewPublisher(p, w.config), nil
	})
	router.AddMiddleware(tracing.Middleware(w.config))
	router.AddHandler("relay", "account", sub, "relayed", out, func(msg *message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("new", nil), msg}, nil
	})
	w.start(router)

	published := w.span("publish relayed")
	requireChild(t, w.span("process account"), published)
	relayed, err := out.Subscribe(t.Context(), "relayed")
	require.NoError(t, err)
	for range 2 {
		msg := <-relayed
		assert.Equal(t, traceparent(published), msg.Metadata.Get("traceparent"), "message %s", msg.UUID)
		msg.Ack()
	}
}

func TestAnEventWithoutATraceIsHandledWithoutALink(t *testing.T) {
	t.Parallel()
	for name, traceparent := range map[string]string{"none": "", "malformed": "00-x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{"traceparent": traceparent})
			_, err := w.plain.Execute(ctx, "42", events(Deposited{1}))
			require.NoError(t, err)
			w.run(func(*message.Message) error { return nil }, tracing.Middleware(w.config))

			assert.Empty(t, w.span("process account").Links())
		})
	}
}

func TestBaggageReachesTheHandlerIfThePropagatorCarriesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	ctx := propagation.Baggage{}.Extract(t.Context(), propagation.MapCarrier{"baggage": "tenant=a"})
	_, err := w.traced(w.config).Execute(ctx, "42", events(Deposited{1}))
	require.NoError(t, err)
	seen := make(chan context.Context, 1)
	w.run(func(msg *message.Message) error { seen <- msg.Context(); return nil }, tracing.Middleware(w.config))

	carried := propagation.MapCarrier{}
	propagation.Baggage{}.Inject(<-seen, carried)
	assert.Equal(t, "tenant=a", carried.Get("baggage"))
	requireLink(t, w.span("commit account"), w.span("process account"))
}
