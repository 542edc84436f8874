package metrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

func Example() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
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
	totals, err := projection.New(client, projection.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(
		metrics.NewSubscriberCollector(sub, metrics.SubscriberConfig{ConsumerGroup: "totals"}),
		metrics.NewProjectionCollector(totals, metrics.ProjectionConfig{Name: "totals"}),
	)

	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, family := range families[:4] {
		fmt.Println(family.GetName(), family.GetType(), len(family.GetMetric()))
	}

	// Output:
	// millrace_projection_events_applied_total COUNTER 1
	// millrace_projection_events_ignored_total COUNTER 1
	// millrace_projection_writes_dropped_total COUNTER 1
	// millrace_subscriber_aggregates_parked_total COUNTER 1
}
