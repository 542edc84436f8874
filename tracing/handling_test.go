package tracing_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/tracing"
)

func TestARedeliveryHasASpanOfItsOwnWithTheNextAttempt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}, Deposited{2}))
	var calls atomic.Int32
	w.run(func(*message.Message) error {
		if calls.Add(1) <= 2 {
			return errHandler
		}
		return nil
	}, tracing.Middleware(w.config))

	spans := w.named("process account", 4)
	for i, want := range []struct {
		number, attempt int64
		status          codes.Code
	}{{1, 1, codes.Error}, {1, 2, codes.Error}, {1, 3, codes.Unset}, {2, 1, codes.Unset}} {
		requireLink(t, w.span("commit account"), spans[i])
		attributes := attributesOf(spans[i])
		assert.Equal(t, want.number, attributes["millrace.event.number"], "span %d", i+1)
		assert.Equal(t, want.attempt, attributes["millrace.delivery.attempt"], "span %d", i+1)
		assert.Equal(t, want.status, spans[i].Status().Code, "span %d", i+1)
		if want.status == codes.Error {
			assert.Equal(t, errHandler.Error(), spans[i].Status().Description)
			assert.Equal(t, "*errors.errorString", attributes["error.type"])
			assert.Len(t, spans[i].Events(), 1, "the error is an event of the span")
		}
	}
}

func TestANackWithoutAnErrorIsAnAttemptToo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
	var calls atomic.Int32
	w.run(func(msg *message.Message) error {
		if calls.Add(1) == 1 {
			msg.Nack()
		}
		return nil
	}, tracing.Middleware(w.config))

	// The second handling can end before the first, which goes on after its Nack.
	var attempts []any
	for _, span := range w.named("process account", 2) {
		attempts = append(attempts, attributesOf(span)["millrace.delivery.attempt"])
	}
	assert.ElementsMatch(t, []any{int64(1), int64(2)}, attempts)
}

func TestAHandlingWhoseMessagesCannotBePublishedIsAnAttempt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
	router, sub := w.router()
	router.AddMiddleware(tracing.Middleware(w.config))
	var calls atomic.Int32
	router.AddHandler("relay", "account", sub, "relayed", unwilling{errHandler}, func(*message.Message) ([]*message.Message, error) {
		if calls.Add(1) == 1 {
			return []*message.Message{message.NewMessage("new", nil)}, nil
		}
		return nil, nil
	})
	w.start(router)

	assert.Equal(t, int64(2), attributesOf(w.named("process account", 2)[1])["millrace.delivery.attempt"])
}

func TestAHandlingTellsTheGroupThatItIsFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
	router, sub := w.router()
	router.AddMiddleware(tracing.Middleware(w.config)) // for the handlers of both
	handle := func(*message.Message) error { return nil }
	router.AddConsumerHandler("totals-handler", "account", sub, handle)
	router.AddConsumerHandler("mails-handler", "account", w.subscriber("mails"), handle)
	w.start(router)

	groups := map[any]any{}
	for _, span := range w.named("process account", 2) {
		attributes := attributesOf(span)
		groups[attributes["watermill.handler"]] = attributes["messaging.consumer.group.name"]
	}
	assert.Equal(t, map[any]any{"totals-handler": "totals", "mails-handler": "mails"}, groups)
}

// retry runs a handler a second time within one delivery.
func retry(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		if produced, err := next(msg); err == nil {
			return produced, nil
		}
		return next(msg)
	}
}

func TestRetriesWithinADeliveryShareASpanOrHaveOneEach(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]bool{"retry after": false, "retry before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
			var calls atomic.Int32
			handler := func(*message.Message) error {
				if calls.Add(1) == 1 {
					return errHandler
				}
				return nil
			}

			if !each {
				w.run(handler, tracing.Middleware(w.config), retry)
				assert.Equal(t, codes.Unset, w.span("process account").Status().Code)
				return
			}
			w.run(handler, retry, tracing.Middleware(w.config))
			spans := w.named("process account", 2)
			for i, span := range spans {
				assert.False(t, span.Parent().IsValid(), "no run is within another")
				assert.Equal(t, int64(1), attributesOf(span)["millrace.delivery.attempt"], "run %d is of the same delivery", i+1)
			}
		})
	}
}

func recoverer(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) (produced []*message.Message, err error) {
		defer func() {
			if recovered := recover(); recovered != nil {
				err = fmt.Errorf("panic: %v", recovered)
			}
		}()
		return next(msg)
	}
}

func TestAPanicOfAHandlerEndsItsSpanAsAnError(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Execute(t, w.accounts, "42", events(Deposited{1}))
	var calls atomic.Int32
	w.run(func(*message.Message) error {
		if calls.Add(1) == 1 {
			panic("no such account")
		}
		return nil
	}, recoverer, tracing.Middleware(w.config))

	span := w.named("process account", 2)[0]
	assert.Equal(t, codes.Error, span.Status().Code)
	require.Len(t, span.Events(), 1)
	assert.Contains(t, span.Events()[0].Attributes, attribute.String("exception.message", "no such account"))
}

func TestMessagesOfOtherSubscribersHaveSpansToo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	pubsub := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	_, requested := w.begin("request")
	msg := message.NewMessage("one", []byte("{}"))
	msg.Metadata.Set("traceparent", traceparent(requested))
	require.NoError(t, pubsub.Publish("mails", msg))
	router, _ := w.router()
	router.AddMiddleware(tracing.Middleware(w.config))
	router.AddConsumerHandler("mailer", "mails", pubsub, func(*message.Message) error { return nil })
	w.start(router)

	span := w.span("process mails")
	requireLink(t, requested, span)
	assert.Equal(t, map[attribute.Key]any{
		"messaging.operation.name": "process", "messaging.operation.type": "process", "messaging.destination.name": "mails",
		"messaging.message.id": "one", "messaging.message.body.size": int64(2), "watermill.handler": "mailer",
	}, attributesOf(span))
}
