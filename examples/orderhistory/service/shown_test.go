package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

var (
	ofOrder  = aggregate.ID{Type: order.Definition.Type(), Value: "first"}
	ofTicket = aggregate.ID{Type: ticket.Definition.Type(), Value: "first"}
)

// place opens a service with an order of ada and its ticket, which no group consumes.
func place(t *testing.T) *service.Service {
	t.Helper()
	s, err := service.Open(t.Context(), testdb.Client(t), millrace.Config{})
	require.NoError(t, err)
	_, err = s.Orders.Execute(t.Context(), "first", order.Create(order.Details{
		ConsumerID: "ada", Restaurant: "Ajanta", Lines: []order.Line{{Name: "Naan", Quantity: 1, PriceCents: 350}},
	}))
	require.NoError(t, err)
	_, err = s.Tickets.Execute(t.Context(), "first", ticket.Request(0, nil))
	require.NoError(t, err)
	return s
}

func firstEvent(t *testing.T, s *service.Service, id aggregate.ID) (event *journal.Record) {
	t.Helper()
	for r, err := range s.Journal().Events(t.Context(), id, 1, 1) {
		require.NoError(t, err)
		event = r
	}
	require.NotNil(t, event)
	return event
}

func TestAConsumerIsToldOfAnOrderThatTheHistoryDoesNotShow(t *testing.T) {
	t.Parallel()
	s := place(t)
	consumer, err := service.ConsumerOf(s, t.Context(), firstEvent(t, s, ofOrder))
	require.NoError(t, err)
	assert.Equal(t, "ada", consumer)

	consumer, err = service.ConsumerOf(s, t.Context(), firstEvent(t, s, ofTicket))
	require.NoError(t, err)
	assert.Empty(t, consumer, "a ticket does not know the consumer")
}

func TestAnEventIsNotShownBeforeAQueryShowsIt(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := place(t)
		ackEverything(t, s)
		require.NoError(t, s.Groups().WaitApplied(t.Context(), service.HistoryGroup, ofOrder, 1))

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, s.WaitShown(ctx, ofOrder, 1), groups.ErrNotApplied, "the position is there, but no order")
	})
}

// ackEverything runs a consumer of the history's group that stores positions, and no orders.
func ackEverything(t *testing.T, s *service.Service) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: s.Journal(), ConsumerGroup: service.HistoryGroup, Timing: subscriber.Timing{CommitInterval: 10 * time.Millisecond},
	}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), ofOrder.Type)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for msg := range messages {
			msg.Ack()
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, sub.Close())
		<-ended
	})
}
