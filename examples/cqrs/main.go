// Command cqrs uses Watermill's event bus and event processor on a journal.
//
//	go run ./examples/cqrs
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

type OrderPlaced struct {
	Order string
	Total int
}

func (OrderPlaced) EventType() string { return "order.placed.v1" }

// Watermill's event bus publishes typed events, and its event processor hands them to typed handlers, those that a
// repository commits as well.
func main() {
	ctx := context.Background()
	client, err := dynamo.Client(ctx)
	check(err)
	check(journal.Create(ctx, client, journal.Config{Shards: 4})) // makes the tables, unless they are there
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	marshaler := cqrs.JSONMarshaler{GenerateName: func(event any) string {
		return event.(interface{ EventType() string }).EventType()
	}}

	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	check(err)
	defer func() { check(p.Close()) }()
	bus, err := cqrs.NewEventBusWithConfig(p, cqrs.EventBusConfig{
		Marshaler:            marshaler,
		GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "order", nil },
		OnPublish: func(params cqrs.OnEventSendParams) error {
			params.Message.Metadata.Set(publisher.AggregateIDKey, params.Event.(OrderPlaced).Order)
			return nil
		},
	})
	check(err)

	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		Marshaler:              marshaler,
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return "order", nil },
		SubscriberConstructor: func(params cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.HandlerName}, nil)
		},
		AckOnUnknownEvent: true, // the topic has the events of all types
	})
	check(err)
	handled := make(chan struct{})
	once := sync.OnceFunc(func() { close(handled) }) // an event may come again
	err = processor.AddHandlers(cqrs.NewEventHandler("invoicing", func(_ context.Context, placed *OrderPlaced) error {
		fmt.Println("invoice", placed.Order, "over", placed.Total)
		once()
		return nil
	}))
	check(err)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()

	check(bus.Publish(ctx, OrderPlaced{Order: "1234", Total: 700}))
	<-handled
	check(router.Close())
	check(<-ended)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
