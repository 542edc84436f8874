package tracing_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/tracing"
)

// openJournal returns a journal in memory.
func openJournal(ctx context.Context) (*journal.Journal, error) {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}); err != nil {
		return nil, err
	}
	return journal.Open(ctx, client, journal.Config{})
}

func Example() {
	// A program usually sets the global provider and propagator: otel.SetTracerProvider,
	// otel.SetTextMapPropagator. Then tracing.Config{} is enough.
	spans := tracetest.NewInMemoryExporter()
	config := tracing.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		Propagator:     propagation.TraceContext{},
	}
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	accounts, err := repository.New(j, Accounts, repository.Config{Middleware: tracing.CommitMiddleware(config)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = accounts.Execute(ctx, "42", events(Deposited{100})); err != nil {
		fmt.Println(err)
		return
	}

	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "totals"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	router.AddMiddleware(tracing.Middleware(config))
	router.AddConsumerHandler("totals", "account", sub, func(msg *message.Message) error {
		go sub.Close() // one event is enough here; the router ends with its subscriber
		return nil
	})
	if err := router.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}

	commit, handling := spans.GetSpans()[0], spans.GetSpans()[1]
	fmt.Println(commit.Name, commit.SpanKind)
	fmt.Println(handling.Name, handling.SpanKind)
	fmt.Println("linked:", handling.Links[0].SpanContext.SpanID() == commit.SpanContext.SpanID())

	// Output:
	// commit account producer
	// process account consumer
	// linked: true
}

func ExampleNewPublisher() {
	spans := tracetest.NewInMemoryExporter()
	config := tracing.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		Propagator:     propagation.TraceContext{},
	}
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	plain, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := tracing.NewPublisher(plain, config)
	defer func() { _ = orders.Close() }()

	// The span of Publish is a child of the span in the message's context, usually of a request.
	msg := message.NewMessageWithContext(ctx, watermill.NewUUID(), []byte(`{"Item":"flour"}`))
	msg.Metadata.Set(publisher.NameKey, "order.placed.v1")
	msg.Metadata.Set(publisher.AggregateIDKey, "1234")
	if err := orders.Publish("order", msg); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spans.GetSpans()[0].Name)

	// Output: publish order
}

func ExampleContextWithTrace() {
	config := tracing.Config{Propagator: propagation.TraceContext{}}
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// A middleware of the server has started a span for the request.
	request := config.Propagator.Extract(ctx, propagation.MapCarrier{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	})
	account, err := accounts.Execute(tracing.ContextWithTrace(request, config), "42", events(Deposited{100}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range j.Events(ctx, account.ID, 1, 1) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Metadata["traceparent"])
	}

	// Output: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
}

// One option adds spans to all commits of an App.
func ExampleCommitMiddleware() {
	spans := tracetest.NewInMemoryExporter()
	config := tracing.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), Propagator: propagation.TraceContext{}}
	ctx := context.Background()
	app, err := millrace.Open(ctx, dynamotest.Open().Client(), millrace.Config{
		Journal:          journal.Config{Layout: journal.Packed, Shards: 4},
		Middleware:       []message.HandlerMiddleware{tracing.Middleware(config)},
		CommitMiddleware: tracing.CommitMiddleware(config),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := millrace.Repository(app, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := accounts.Execute(ctx, "42", events(Deposited{100})); err != nil {
		fmt.Println(err)
		return
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
	}

	// Output:
	// commit account
}
