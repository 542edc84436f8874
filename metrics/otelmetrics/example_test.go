package otelmetrics_test

import (
	"context"
	"fmt"
	"maps"

	"go.opentelemetry.io/otel"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics/otelmetrics"
	"github.com/millrace-dev/millrace/subscriber"
)

// The program has set a meter provider by otel.SetMeterProvider.
func ExampleRegister() {
	ctx, client := context.Background(), dynamotest.Open().Client() // any *dynamodb.Client
	app, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}

	registration, err := otelmetrics.Register(otel.Meter("millrace"), app.Components())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = registration.Unregister() }()
}

// Without an App, name each component.
func ExampleRegister_components() {
	ctx, client := context.Background(), dynamotest.Open().Client()
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}); err != nil {
		fmt.Println(err)
		return
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "totals"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	components := map[string]any{"totals": sub}

	_, err = otelmetrics.Register(otel.Meter("millrace"), maps.All(components))
	fmt.Println(err)

	// Output: <nil>
}
