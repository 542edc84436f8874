package command_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

type Order struct{ Placed bool }

type OrderPlaced struct{ Total int }

func (OrderPlaced) EventType() string { return "order.placed.v1" }
func (OrderPlaced) Apply(o *Order)    { o.Placed = true }

var Orders = aggregate.Define[Order]("order", OrderPlaced{})

// PlaceOrder is a command.
type PlaceOrder struct {
	Order string
	Total int
}

func (p *PlaceOrder) Decide(o Order) (aggregate.Events[Order], error) {
	if o.Placed {
		return nil, errors.New("the order was placed before")
	}
	return aggregate.Events[Order]{OrderPlaced{p.Total}}, nil
}

func ExampleHandler() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := dynamotest.Open().Client() // in production dynamodb.NewFromConfig
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 1}); err != nil {
		fmt.Println(err)
		return
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, err := repository.New(j, Orders, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	processor, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
		Marshaler:              cqrs.JSONMarshaler{},
		GenerateSubscribeTopic: func(cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return "commands", nil },
		SubscriberConstructor: func(p cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: p.HandlerName}, nil)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	answers := make(chan error)
	err = processor.AddHandlers(command.Handler("place-order", orders,
		func(p *PlaceOrder) (string, aggregate.Decision[Order]) { return p.Order, p.Decide },
		command.OnRefused(func(_ context.Context, _ *PlaceOrder, refused *repository.RefusedError) error {
			answers <- refused.Err
			return nil
		}),
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = router.Run(ctx) }()

	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	bus, err := cqrs.NewCommandBusWithConfig(p, cqrs.CommandBusConfig{
		Marshaler:            cqrs.JSONMarshaler{},
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		if err := bus.Send(ctx, &PlaceOrder{Order: "42", Total: 700}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(<-answers)
	order, err := orders.Load(ctx, "42")
	fmt.Println(order.Version, err)

	// Output:
	// the order was placed before
	// 1 <nil>
}
