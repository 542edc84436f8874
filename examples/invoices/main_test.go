package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/broker"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/outbound"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 5 * time.Minute

// start runs the program on a database until stop is called.
func start(t *testing.T, client *dynamodb.Client, url string) (out *apptest.Terminal, stop func()) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	out = &apptest.Terminal{}
	var log apptest.Terminal
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, client, url, out, &log) }()
	return out, func() {
		interrupt()
		select {
		case err := <-ended:
			assert.NoError(t, err, &log)
		case <-time.After(patience):
			assert.Fail(t, "the program must stop when it is interrupted")
		}
	}
}

func awaitText(t *testing.T, out *apptest.Terminal, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, patience, 10*time.Millisecond, "%q must be printed: %s", text, out)
}

func TestOrdersOfAnotherProgramAreInvoicedOnce(t *testing.T) {
	t.Parallel()
	server, err := broker.Serve("127.0.0.1:0", topic)
	require.NoError(t, err)
	shop, stopShop := shopOf(t, server.URL())
	database := dynamotest.New(t).Client()
	place := func(id string, cents int64) {
		_, err := shop.Orders.Execute(t.Context(), id, order.Create(order.Details{
			ConsumerID: "ada", Restaurant: "Ajanta", CreatedAt: time.Now(), Lines: []order.Line{{Name: "Dal", Quantity: 2, PriceCents: cents}},
		}))
		require.NoError(t, err)
	}
	out, stop := start(t, database, server.URL())
	place("o1", 450)
	_, err = shop.Orders.Execute(t.Context(), "o1", order.Revise([]order.Line{{Name: "Dal", Quantity: 1, PriceCents: 500}}))
	require.NoError(t, err)
	_, err = shop.Orders.Execute(t.Context(), "o1", order.Cancel("no appetite"))
	require.NoError(t, err)
	awaitText(t, out, "o1: nothing is owed\n")
	assert.Equal(t, "o1: ada owes 900 cents\no1: it is 500 cents now\no1: nothing is owed\n", out.String())
	stop()

	for i := range 20 { // while the program is not there
		place(fmt.Sprint("p", i), 100)
	}
	out, stop = start(t, database, server.URL())
	place("last", 100)

	for i := range 20 {
		awaitText(t, out, fmt.Sprintf("p%d: ada owes 200 cents\n", i))
	}
	awaitText(t, out, "last: ada owes 200 cents\n")
	assert.Equal(t, 21, strings.Count(out.String(), "\n"), "each invoice is printed once: %s", out)
	stop()
	stopShop()
	require.NoError(t, server.Close())
}

// shopOf runs the other program without its API.
func shopOf(t *testing.T, url string) (shop *service.Service, stop func()) {
	t.Helper()
	publisher, err := broker.NewPublisher(url, nil)
	require.NoError(t, err)
	shop, err = service.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{})
	require.NoError(t, err)
	_, err = outbound.Forward(shop.App, publisher)
	require.NoError(t, err)
	end, err := shop.Start(t.Context())
	require.NoError(t, err)
	return shop, func() {
		require.NoError(t, end())
		require.NoError(t, publisher.Close())
	}
}

func TestItSaysThatTheOtherProgramIsMissing(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), dynamotest.New(t).Client(), "nats://127.0.0.1:1", io.Discard, io.Discard)
	assert.ErrorContains(t, err, "start orderhistory with -nats first")
}
