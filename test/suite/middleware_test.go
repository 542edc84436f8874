package suite_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/components/metrics"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// handlePlaced adds a processor that handles the payloads of orderEvent unchanged.
func handlePlaced(t *testing.T, s store, router *message.Router, handle func(ctx context.Context, payload string) error) {
	t.Helper()
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return "order", nil },
		SubscriberConstructor: func(p cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			_, sub := s.ordered(t, p.HandlerName)
			return sub, nil
		},
		Marshaler: placedMarshaler{cqrs.JSONMarshaler{GenerateName: publisher.EventName}},
	})
	require.NoError(t, err)
	require.NoError(t, processor.AddHandlers(cqrs.NewEventHandler("orders", func(ctx context.Context, e *placed) error {
		return handle(ctx, e.text)
	})))
}

type placed struct{ text string }

func (placed) EventType() string { return "order.placed.v1" }

type placedMarshaler struct{ cqrs.JSONMarshaler }

func (placedMarshaler) Unmarshal(msg *message.Message, v any) error {
	v.(*placed).text = string(msg.Payload)
	return nil
}

func TestAHandlerThatTimesOutGetsItsMessageAgainWithTimeLeft(t *testing.T) {
	t.Parallel()
	for name, middlewares := range map[string][]message.HandlerMiddleware{
		"by the subscriber": {middleware.Timeout(100 * time.Millisecond)},
		"by Retry": {
			middleware.Retry{MaxRetries: 1, InitialInterval: time.Millisecond, ResetContextOnRetry: true}.Middleware,
			middleware.Timeout(100 * time.Millisecond),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { timesOutOnce(t, middlewares) })
		})
	}
}

func timesOutOnce(t *testing.T, middlewares []message.HandlerMiddleware) {
	t.Helper()
	s := newStore(t)
	pub, _ := s.ordered(t, "publisher")
	var got received
	// There is one aggregate, so its messages are handled one at a time.
	tried := 0
	startRouter(t, func(router *message.Router) {
		router.AddMiddleware(middlewares...)
		handlePlaced(t, s, router, func(ctx context.Context, payload string) error {
			if tried++; tried == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			id, number, ok := subscriber.AggregateFromContext(ctx)
			assert.True(t, ok, "a middleware's context must have the values of the message's")
			assert.Equal(t, "order-1", id.String())
			assert.EqualValues(t, 1, number)
			got.add("orders", payload)
			return nil
		})
	})
	require.NoError(t, pub.Publish("order", orderEvent("1", 1)))
	eventually(t, "the second attempt handles it", func() bool { return got.equals("orders", "1/1") })
	assert.Equal(t, 2, tried)
}

func TestMetricsOfWatermillCountOurMessages(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	registry := prometheus.NewRegistry()
	builder := metrics.NewPrometheusMetricsBuilder(registry, "shop", "")
	plain, orders := s.ordered(t, "invoicing")
	_, invoices := s.ordered(t, "accounting")
	pub, err := builder.DecoratePublisher(plain)
	require.NoError(t, err)

	var got inbox
	var tried tries
	router := startRouter(t, func(router *message.Router) {
		builder.AddPrometheusRouterMetrics(router)
		router.AddHandler("invoicing", "order", orders, "invoice", plain, func(msg *message.Message) ([]*message.Message, error) {
			if tried.count(msg) == 1 {
				return nil, errors.New("not yet")
			}
			_, ok := subscriber.RecordFromContext(msg.Context())
			assert.True(t, ok, "the decorators must leave the message's context as it is")
			return message.Messages{orderEvent("1", 1)}, nil
		})
		router.AddConsumerHandler("accounting", "invoice", invoices, got.handle)
	})
	require.NoError(t, pub.Publish("order", orderEvent("1", 1), orderEvent("2", 1)))
	eventually(t, "both have been invoiced", func() bool { return got.size() == 2 })
	require.NoError(t, router.Close())

	for series, want := range map[string]uint64{
		"shop_subscriber_messages_received_total acked=acked handler_name=invoicing subscriber_name=subscriber.Subscriber":  2,
		"shop_subscriber_messages_received_total acked=nacked handler_name=invoicing subscriber_name=subscriber.Subscriber": 2,
		"shop_handler_execution_time_seconds handler_name=invoicing success=false":                                          2,
		"shop_handler_execution_time_seconds handler_name=accounting success=true":                                          2,
		"shop_publish_time_seconds handler_name=<no handler> publisher_name=publisher.Publisher success=true":               1,
		"shop_publish_time_seconds handler_name=invoicing publisher_name=publisher.Publisher success=true":                  2,
	} {
		eventually(t, series, func() bool { return gathered(t, registry)[series] == want })
	}
}

// gathered returns each series with its count. For a histogram it is the number of observations.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]uint64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	counts := map[string]uint64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series := family.GetName()
			for _, label := range metric.GetLabel() {
				series += " " + label.GetName() + "=" + label.GetValue()
			}
			counts[series] = uint64(metric.GetCounter().GetValue()) + metric.GetHistogram().GetSampleCount()
		}
	}
	return counts
}

// The test uses the usual middlewares of applications, in the order of Watermill's examples.
// Timeout leaves its ended context on the message that a handler returns, and PoisonQueue publishes
// that message.
func TestTheUsualMiddlewaresPoisonWhatTimesOutAndForwardTheRest(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, usualMiddlewares)
}

func usualMiddlewares(t *testing.T) {
	t.Helper()
	s := newStore(t)
	plain, orders := s.ordered(t, "invoicing")
	_, poisoned := s.ordered(t, "poisoned")
	_, invoices := s.ordered(t, "accounting")
	poison, err := middleware.PoisonQueue(plain, "poison")
	require.NoError(t, err)
	var poisonedIn, invoicedIn inbox
	var tried tries
	startRouter(t, func(router *message.Router) {
		invoicing := router.AddHandler("invoicing", "order", orders, "invoice", plain, func(msg *message.Message) ([]*message.Message, error) {
			switch tried.count(msg); string(msg.Payload) {
			case "1/1": // it forwards late
				<-msg.Context().Done()
				return message.Messages{msg}, nil
			case "1/2":
				<-msg.Context().Done()
				return nil, msg.Context().Err()
			case "1/3":
				panic("a bug")
			}
			return message.Messages{msg}, nil
		})
		invoicing.AddMiddleware(
			middleware.CorrelationID,
			poison,
			middleware.Retry{MaxRetries: 2, InitialInterval: time.Millisecond, ResetContextOnRetry: true}.Middleware,
			middleware.Recoverer,
			middleware.Timeout(50*time.Millisecond),
		)
		router.AddConsumerHandler("accounting", "invoice", invoices, invoicedIn.handle)
		router.AddConsumerHandler("poisoned", "poison", poisoned, poisonedIn.handle)
	})
	for n := 1; n <= 4; n++ {
		require.NoError(t, plain.Publish("order", orderEvent("1", n)))
	}
	eventually(t, "what fails is poisoned and the rest goes on", func() bool { return invoicedIn.size() == 2 && poisonedIn.size() == 2 })
	assert.Equal(t, []string{"1/1", "1/4"}, invoicedIn.payloads("1"))
	assert.Equal(t, []string{"1/2", "1/3"}, poisonedIn.payloads("1"))
	tried.mu.Lock()
	defer tried.mu.Unlock()
	assert.Equal(t, map[string]int{"1/1": 1, "1/2": 3, "1/3": 3, "1/4": 1}, tried.by)
}

func TestAMessageIsPoisonedHoweverLongItsErrorIs(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pub, orders := s.ordered(t, "invoicing")
	_, poisoned := s.ordered(t, "poisoned")
	poison, err := middleware.PoisonQueue(pub, "poison")
	require.NoError(t, err)
	var tried tries
	var poisonedIn inbox
	startRouter(t, func(router *message.Router) {
		router.AddConsumerHandler("invoicing", "order", orders, func(msg *message.Message) error {
			tried.count(msg)
			return errors.New(strings.Repeat("no such customer, ", 30_000))
		}).AddMiddleware(poison)
		router.AddConsumerHandler("poisoned", "poison", poisoned, poisonedIn.handle)
	})
	require.NoError(t, pub.Publish("order", orderEvent("1", 1), orderEvent("1", 2)))
	eventually(t, "both are in the queue", func() bool { return poisonedIn.size() == 2 })
	assert.Equal(t, []string{"1/1", "1/2"}, poisonedIn.payloads("1"))
	assert.Equal(t, map[string]int{"1/1": 1, "1/2": 1}, tried.by)
	assert.True(t, strings.HasPrefix(poisonedIn.messages[0].Metadata.Get(middleware.ReasonForPoisonedKey), "no such customer, "))
}
