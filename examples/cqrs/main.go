// Command cqrs uses Watermill's command bus, command processor, event processor and event group
// processor on a journal.
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

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

type Order struct{ Placed, Paid bool }

type Events = aggregate.Events[Order]

type (
	OrderPlaced struct{ Total int }
	OrderPaid   struct{}
)

func (OrderPlaced) EventType() string { return "order.placed.v1" }
func (OrderPlaced) Apply(o *Order)    { o.Placed = true }
func (OrderPaid) EventType() string   { return "order.paid.v1" }
func (OrderPaid) Apply(o *Order)      { o.Paid = true }

var Orders = aggregate.Define[Order]("order", OrderPlaced{}, OrderPaid{})

// PlaceOrder is a command.
type PlaceOrder struct {
	Order string
	Total int
}

func (p PlaceOrder) decide(o Order) (Events, error) {
	if o.Placed {
		return nil, nil
	}
	return Events{OrderPlaced{p.Total}}, nil
}

// PayOrder is a command that follows from an event.
type PayOrder struct{ Order string }

func (p PayOrder) decide(o Order) (Events, error) {
	if o.Paid {
		return nil, nil
	}
	return Events{OrderPaid{}}, nil
}

// ofOrder is a command for an order.
type ofOrder interface{ order() string }

func (p PlaceOrder) order() string { return p.Order }
func (p PayOrder) order() string   { return p.Order }

// A command goes through the journal to its handler, which executes it on an aggregate. The
// resulting event goes to a typed event handler, which sends the next command. It also goes to a
// group of handlers, which receives all events of an order in their order.
func main() {
	ctx := context.Background()
	client, err := dynamo.Client(ctx)
	check(err)
	// creates the tables if they are missing
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	orders, err := repository.New(j, Orders, repository.Config{})
	check(err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	// the names that the journal uses
	marshaler := cqrs.JSONMarshaler{GenerateName: publisher.EventName}

	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	check(err)
	defer func() { check(p.Close()) }()
	bus, err := cqrs.NewCommandBusWithConfig(p, cqrs.CommandBusConfig{
		Marshaler:            marshaler,
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "order-commands", nil },
		// Commands for the same order stay in order; other commands run concurrently.
		OnSend: func(params cqrs.CommandBusOnSendParams) error {
			params.Message.Metadata.Set(publisher.AggregateIDKey, params.Command.(ofOrder).order())
			return nil
		},
	})
	check(err)

	commands, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
		Marshaler:              marshaler,
		GenerateSubscribeTopic: func(cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return "order-commands", nil },
		SubscriberConstructor: func(params cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.HandlerName}, nil)
		},
	})
	check(err)
	// Each command is executed once, however often it is delivered.
	check(commands.AddHandlers(
		command.Handler("place-order", orders, func(p *PlaceOrder) (string, aggregate.Decision[Order]) { return p.Order, p.decide }),
		command.Handler("pay-order", orders, func(p *PayOrder) (string, aggregate.Decision[Order]) { return p.Order, p.decide }),
	))

	events, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		Marshaler:              marshaler,
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return "order", nil },
		SubscriberConstructor: func(params cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.HandlerName}, nil)
		},
		AckOnUnknownEvent: true, // the topic has events of other types too
	})
	check(err)
	check(events.AddHandlers(cqrs.NewEventHandler("invoicing", func(ctx context.Context, placed *OrderPlaced) error {
		id, _, _ := subscriber.AggregateFromContext(ctx)
		fmt.Println("invoice", id.Value, "over", placed.Total)
		return bus.Send(ctx, PayOrder{Order: id.Value})
	})))

	group, err := cqrs.NewEventGroupProcessorWithConfig(router, cqrs.EventGroupProcessorConfig{
		Marshaler:              marshaler,
		GenerateSubscribeTopic: func(cqrs.EventGroupProcessorGenerateSubscribeTopicParams) (string, error) { return "order", nil },
		SubscriberConstructor: func(params cqrs.EventGroupProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.EventGroupName}, nil)
		},
	})
	check(err)
	handled := make(chan struct{})
	once := sync.OnceFunc(func() { close(handled) }) // an event may be delivered again
	check(group.AddHandlersGroup("log",
		cqrs.NewGroupEventHandler(func(context.Context, *OrderPlaced) error { fmt.Println("placed"); return nil }),
		cqrs.NewGroupEventHandler(func(context.Context, *OrderPaid) error { fmt.Println("paid"); once(); return nil }),
	))

	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	check(bus.Send(ctx, PlaceOrder{Order: "1234", Total: 700}))
	<-handled
	check(router.Close())
	check(<-ended)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
