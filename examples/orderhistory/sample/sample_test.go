package sample_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/sample"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestTheSampleHasOrdersAtAllStagesAlsoWhereTwoServersCompleteIt(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	s, err := service.Open(t.Context(), client, millrace.Config{})
	require.NoError(t, err)
	require.NoError(t, s.Consume())
	stop, err := s.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	missing, err := sample.IsMissing(t.Context(), s)
	require.NoError(t, err)
	require.True(t, missing)
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

	interrupted, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	proxy := dynamotest.NewProxy(t, client)
	first, err := service.Open(t.Context(), proxy.Client(), millrace.Config{})
	require.NoError(t, err)
	// In the middle of the sample.
	proxy.Inject(dynamotest.Pause(func(context.Context) { interrupt() }),
		dynamotest.On("PutItem", "UpdateItem", "TransactWriteItems"), dynamotest.After(100))
	_, err = sample.Add(interrupted, first, now)
	require.ErrorIs(t, err, context.Canceled)
	missing, err = sample.IsMissing(t.Context(), s)
	require.NoError(t, err)
	require.True(t, missing, "the rest of it is")

	var added int
	second := make(chan error, 1)
	go func() {
		_, err := sample.Add(t.Context(), s, now) // from another server
		second <- err
	}()
	added, err = sample.Add(t.Context(), s, now)
	require.NoError(t, err)
	require.NoError(t, <-second)
	_, err = s.Orders.Execute(t.Context(), "first", order.Create(order.Details{
		ConsumerID: "dora", Restaurant: "Ajanta", Lines: []order.Line{{Name: "Naan", Quantity: 1, PriceCents: 350}},
	}))
	require.NoError(t, err)
	missing, err = sample.IsMissing(t.Context(), s)
	require.NoError(t, err)
	assert.False(t, missing, "there is an order of somebody's")

	// The statuses of order, ticket and delivery at each stage.
	stages := []string{
		"APPROVAL_PENDING AWAITING_ACCEPTANCE ", "APPROVED ACCEPTED SCHEDULED", "APPROVED PREPARING SCHEDULED", "APPROVED READY_FOR_PICKUP SCHEDULED",
		"APPROVED READY_FOR_PICKUP PICKED_UP", "APPROVED READY_FOR_PICKUP DELIVERED", "CANCELLED CANCELLED ", "REJECTED DECLINED ",
	}
	require.NoError(t, s.Settle(t.Context()))
	seen, orders := map[string]bool{}, 0
	for _, who := range sample.Consumers {
		page, err := s.History.FindOrderHistory(t.Context(), who, history.Filter{PageSize: history.MaxPageSize})
		require.NoError(t, err)
		require.NotEmpty(t, page.Orders)
		orders += len(page.Orders)
		for _, o := range page.Orders {
			seen[string(o.Status)+" "+string(o.TicketStatus)+" "+string(o.DeliveryStatus)] = true
			assert.LessOrEqual(t, o.Versions.Order, uint64(2), "each step of %s is taken once, whoever adds the sample", o.OrderID)
			assert.True(t, o.CreationTime.Before(now) && o.CreationTime.After(now.AddDate(0, 0, -60)), o.CreationTime)
		}
	}
	assert.Equal(t, added, orders)
	for _, stage := range stages {
		assert.True(t, seen[stage], stage)
	}
}
