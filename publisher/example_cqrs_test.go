package publisher_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/dynamotest"
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
func Example_cqrs() {
	db := dynamotest.Open()
	defer db.Close()
	if err := journal.Create(ctx, db.Client(), journal.Config{Shards: 4}); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	if err != nil {
		log.Fatal(err)
	}
	marshaler := cqrs.JSONMarshaler{GenerateName: func(event any) string {
		return event.(interface{ EventType() string }).EventType()
	}}

	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	bus, err := cqrs.NewEventBusWithConfig(p, cqrs.EventBusConfig{
		Marshaler:            marshaler,
		GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "order", nil },
		OnPublish: func(params cqrs.OnEventSendParams) error {
			params.Message.Metadata.Set(publisher.AggregateIDKey, params.Event.(OrderPlaced).Order)
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		Marshaler:              marshaler,
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return "order", nil },
		SubscriberConstructor: func(params cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.HandlerName}, nil)
		},
		AckOnUnknownEvent: true, // the topic has the events of all types
	})
	if err != nil {
		log.Fatal(err)
	}
	handled := make(chan struct{})
	err = processor.AddHandlers(cqrs.NewEventHandler("invoicing", func(_ context.Context, placed *OrderPlaced) error {
		fmt.Println("invoice", placed.Order, "over", placed.Total)
		close(handled)
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()

	if err := bus.Publish(ctx, OrderPlaced{Order: "1234", Total: 700}); err != nil {
		log.Fatal(err)
	}
	<-handled
	if err := router.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-ended)
	// Output:
	// invoice 1234 over 700
	// <nil>
}
