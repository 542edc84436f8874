package main

import (
	"context"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/broker"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/orderhistory/outbound"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 5 * time.Minute

func TestTheServerSaysWhereItIsServesAndStops(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"classic", "packed"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			servesAndStops(t, layout)
		})
	}
}

func servesAndStops(t *testing.T, layout string) {
	t.Helper()
	client := testdb.Client(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, log apptest.Terminal
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &dynamo.Database{Client: client}, options{address: anyAddress, sample: true, layout: layout}, &out, &log)
	}()

	var base string
	require.Eventually(t, func() bool {
		_, where, serves := strings.Cut(out.String(), "Serving orders on ")
		base, _, _ = strings.Cut(where, " ")
		return serves
	}, patience, 10*time.Millisecond, "the server must say where it is: %s", &log)
	get := func(path string) (int, string) {
		response, err := http.Get(base + path)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	assert.Contains(t, out.String(), "Added 60 sample orders of ada, bob and carol\n")
	response, err := http.Post(base+"/orders", "application/json", strings.NewReader(
		`{"orderId": "first", "consumerId": "ada", "restaurant": "Ajanta", "lines": [{"name": "Fish Curry", "quantity": 1, "priceCents": 300}]}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Eventually(t, func() bool {
		_, found := get("/consumers/ada/orders?keyword=fish")
		return strings.Contains(found, `"orderId":"first"`)
	}, patience, 10*time.Millisecond, "the order must show")
	status, ready := get("/readyz")
	assert.Equal(t, http.StatusOK, status, ready)
	_, metrics := get("/metrics")
	assert.Contains(t, metrics, `millrace_projection_events_applied_total{projection="order-history"}`)
	assert.Contains(t, metrics, `millrace_subscriber_messages_acked_total{consumer_group="policies"}`)
	assert.Contains(t, metrics, "go_goroutines")

	// The stream would not end by itself.
	stream, err := http.Get(base + "/consumers/ada/events")
	require.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()

	interrupt()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the server must stop when it is interrupted")
	}
	_, err = http.Get(base + "/orders/first") //nolint:bodyclose // there is none
	require.Error(t, err, "the server must not listen any more")
	// While other tests run, requests may be slow. On DynamoDB Local, some take too long.
	if !testdb.IsLocal() {
		assert.NotContains(t, log.String(), "level=ERROR")
	}
}

func TestTheServerPublishesItsOrders(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, log apptest.Terminal
	ended := make(chan error, 1)
	o := options{address: anyAddress, sample: true, nats: "127.0.0.1:0"}
	go func() { ended <- serve(ctx, &dynamo.Database{Client: testdb.Client(t)}, o, &out, &log) }()
	var url string
	require.Eventually(t, func() bool {
		_, after, publishes := strings.Cut(out.String(), "go run ./examples/invoices -nats ")
		url, _, _ = strings.Cut(after, "\n")
		return publishes && strings.Contains(out.String(), "Serving orders on ")
	}, patience, 10*time.Millisecond, "the server must say where it publishes: %s", &log)
	sub, err := broker.NewSubscriber(url, "test", nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(ctx, outbound.Topic)
	require.NoError(t, err)
	placed := map[string]bool{}
	for len(placed) < 60 { // the sample
		select {
		case msg := <-messages:
			if msg.Metadata.Get(forward.NameKey) == "OrderPlaced" {
				placed[msg.Metadata.Get(forward.KeyKey)] = true
			}
			msg.Ack()
		case <-time.After(patience):
			require.Fail(t, "all orders must be published")
		}
	}
	require.NoError(t, sub.Close())
	interrupt()
	assert.NoError(t, <-ended)

	o.nats = "0.0.0.0:0"
	err = serve(t.Context(), &dynamo.Database{Client: testdb.Client(t)}, o, io.Discard, io.Discard)
	assert.ErrorContains(t, err, "use a loopback address")
}

func TestAnAddressThatCannotBeServedEndsTheServer(t *testing.T) {
	t.Parallel()
	err := serve(t.Context(), &dynamo.Database{Client: testdb.Client(t)}, options{address: "127.0.0.1:-1"}, io.Discard, io.Discard)
	assert.Error(t, err)
}

func TestAnUnknownCommandIsRefused(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"sing"}, io.Discard, io.Discard)
	assert.EqualError(t, err, `there is no command "sing", only serve and story`)
	assert.Error(t, run(t.Context(), []string{"story", "-orders", "many"}, io.Discard, io.Discard))
	assert.Error(t, run(t.Context(), []string{"serve", "dinner"}, io.Discard, io.Discard))
}

func TestHelpNamesEverythingThatConfiguresAServer(t *testing.T) {
	t.Parallel()
	var help apptest.Terminal
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, &help), flag.ErrHelp)
	for _, name := range []string{"serve ", "-listen", "-host", "-database", "-layout", "-nats", dynamo.EndpointEnv} {
		assert.Contains(t, help.String(), name)
	}
}
