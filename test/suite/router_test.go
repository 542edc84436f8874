package suite_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// Orders are invoiced. The handler fails twice for each order, and always for one event in the
// middle of an order.
func TestRouterRetriesCorrelatesAndHandsWhatKeepsFailingToThePoisonQueue(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pub, orders := s.ordered(t, "invoicing")
	_, invoices := s.ordered(t, "accounting")
	_, poisoned := s.ordered(t, "operations")
	const perOrder = 5
	for n := range perOrder {
		for _, id := range []string{"good", "bad"} {
			require.NoError(t, pub.Publish("order", orderEvent(id, n+1)))
		}
	}

	poison, err := middleware.PoisonQueue(pub, "poisoned-order")
	require.NoError(t, err)
	var tried tries
	var got, out inbox
	router := startRouter(t, func(router *message.Router) {
		router.AddHandler("invoicing", "order", orders, "invoice", pub, func(msg *message.Message) ([]*message.Message, error) {
			if string(msg.Payload) == "bad/3" {
				tried.count(msg)
				return nil, errors.New("no such customer")
			}
			if tried.count(msg) < 3 {
				return nil, errors.New("not yet")
			}
			invoice := message.NewMessage(watermill.NewUUID(), msg.Payload)
			invoice.Metadata.Set(publisher.AggregateIDKey, msg.Metadata.Get(subscriber.AggregateIDKey))
			return []*message.Message{invoice}, nil
		}).AddMiddleware(
			middleware.CorrelationID,
			poison,
			middleware.Retry{MaxRetries: 2, InitialInterval: time.Millisecond}.Middleware,
		)
		router.AddConsumerHandler("accounting", "invoice", invoices, got.handle)
		router.AddConsumerHandler("operations", "poisoned-order", poisoned, out.handle)
	})
	eventually(t, "all invoices and what was poisoned have come", func() bool {
		return got.size() == 2*perOrder-1 && out.size() == 1
	})
	require.NoError(t, router.Close())

	assert.Equal(t, []string{"good/1", "good/2", "good/3", "good/4", "good/5"}, got.payloads("good"))
	assert.Equal(t, []string{"bad/1", "bad/2", "bad/4", "bad/5"}, got.payloads("bad"), "what comes after the poisoned one is handled")
	for _, invoice := range got.messages {
		assert.Equal(t, "request of "+string(invoice.Payload), middleware.MessageCorrelationID(invoice))
	}
	for payload, n := range tried.by {
		assert.Equal(t, 3, n, "%s must be tried once and retried twice", payload)
	}
	dead := out.messages[0]
	assert.Equal(t, "bad/3", string(dead.Payload))
	assert.Equal(t, "order.placed.v1", dead.Metadata.Get(subscriber.NameKey))
	assert.Equal(t, "request of bad/3", middleware.MessageCorrelationID(dead))
	assert.Equal(t, "no such customer", dead.Metadata.Get(middleware.ReasonForPoisonedKey))
	assert.Equal(t, "order", dead.Metadata.Get(middleware.PoisonedTopicKey))
	assert.Equal(t, "invoicing", dead.Metadata.Get(middleware.PoisonedHandlerKey))
	id, number, _ := subscriber.AggregateFromContext(dead.Context())
	assert.Equal(t, "poisoned-order-bad", id.String(), "it keeps the order of its aggregate")
	assert.EqualValues(t, 1, number)
}

func TestRouterThatIsClosedGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pub, _ := s.ordered(t, "publisher")
	var got inbox
	for round := range 3 {
		_, sub := s.ordered(t, "group")
		router := startRouter(t, func(router *message.Router) {
			router.AddConsumerHandler("handler", "order", sub, got.handle)
		})
		for n := range 10 {
			require.NoError(t, pub.Publish("order", orderEvent("1", 10*round+n+1)))
		}
		eventually(t, "the messages of this round have come", func() bool { return got.size() >= 10*(round+1) })
		require.NoError(t, router.Close())
	}

	var want []string
	for n := range 30 {
		want = append(want, fmt.Sprintf("1/%d", n+1))
	}
	assert.Equal(t, want, got.payloads("1"), "each once, in order")
}

func orderEvent(id string, n int) *message.Message {
	msg := message.NewMessage(watermill.NewUUID(), []byte(id+"/"+strconv.Itoa(n)))
	msg.Metadata.Set(publisher.NameKey, "order.placed.v1")
	msg.Metadata.Set(publisher.AggregateIDKey, id)
	middleware.SetCorrelationID("request of "+string(msg.Payload), msg)
	return msg
}

func startRouter(t *testing.T, add func(router *message.Router)) *message.Router {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, testLogger(t))
	require.NoError(t, err)
	add(router)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-ended) }) // the context of the test has ended by then
	select {
	case <-router.Running():
	case err := <-ended:
		require.NoError(t, err)
	}
	return router
}

// tries counts how often each payload was handled.
type tries struct {
	mu sync.Mutex
	by map[string]int
}

func (c *tries) count(msg *message.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[string(msg.Payload)]++
	return c.by[string(msg.Payload)]
}

// inbox holds the messages of a handler.
type inbox struct {
	mu       sync.Mutex
	messages []*message.Message
}

func (i *inbox) handle(msg *message.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.messages = append(i.messages, msg)
	return nil
}

func (i *inbox) size() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.messages)
}

// payloads returns the payloads of one aggregate, in the order of delivery.
func (i *inbox) payloads(id string) (payloads []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, msg := range i.messages {
		if msg.Metadata.Get(subscriber.AggregateIDKey) == id {
			payloads = append(payloads, string(msg.Payload))
		}
	}
	return payloads
}
