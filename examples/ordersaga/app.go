package main

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/ordersaga/saga"
	"github.com/millrace-dev/millrace/examples/ordersaga/services"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// app is all services and the saga in one program. Each part could be a program of its own.
type app struct {
	customers *repository.Repository[services.Customer]
	tickets   *repository.Repository[services.Ticket]
	payments  *repository.Repository[services.Payment]
	orders    *repository.Repository[services.Order]
	manager   *process.Manager[saga.Saga]

	publisher *publisher.Publisher
	router    *message.Router
	ended     chan error
}

// start sets everything up. Now is the clock of the timeouts.
func start(ctx context.Context, client *dynamodb.Client, now func() time.Time) (*app, error) {
	if err := journal.Create(ctx, client, journal.Config{Shards: 4}); err != nil { // makes the tables, unless they are there
		return nil, err
	}
	if err := process.CreateTable(ctx, client, process.DefaultTable); err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		return nil, err
	}
	a := &app{ended: make(chan error, 2)}
	if err := a.open(j); err != nil {
		return nil, err
	}
	marshaler := cqrs.JSONMarshaler{GenerateName: cqrs.StructName}
	a.manager, err = process.New(j, client, saga.Definition, process.Config{
		Publisher: a.publisher, Marshaler: marshaler, Now: now, PollInterval: 50 * time.Millisecond,
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return topicOf(p.CommandName), nil },
	})
	if err != nil {
		return nil, err
	}
	if a.router, err = message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}); err != nil {
		return nil, err
	}
	a.router.AddMiddleware(subscriber.NackReason)
	for _, topic := range []string{services.Orders.Type(), services.Customers.Type(), services.Tickets.Type(), services.Payments.Type()} {
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "order-saga"}, nil)
		if err != nil {
			return nil, err
		}
		a.router.AddConsumerHandler("order-saga/"+topic, topic, sub, a.manager.Handle)
	}
	if err := a.handleCommands(j, marshaler); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { a.ended <- a.manager.Run(running) }()
	go func() {
		defer stop() // timeouts end with the handlers
		a.ended <- a.router.Run(running)
	}()
	return a, nil
}

func (a *app) open(j *journal.Journal) (err error) {
	if a.customers, err = repository.New(j, services.Customers, repository.Config{}); err != nil {
		return err
	}
	if a.tickets, err = repository.New(j, services.Tickets, repository.Config{}); err != nil {
		return err
	}
	if a.payments, err = repository.New(j, services.Payments, repository.Config{}); err != nil {
		return err
	}
	if a.orders, err = repository.New(j, services.Orders, repository.Config{}); err != nil {
		return err
	}
	a.publisher, err = publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	return err
}

// topicOf returns the topic of a type of commands.
func topicOf(command string) string { return "command." + command }

// handleCommands has Watermill's command processor hand each command to its service.
func (a *app) handleCommands(j *journal.Journal, marshaler cqrs.CommandEventMarshaler) error {
	processor, err := cqrs.NewCommandProcessorWithConfig(a.router, cqrs.CommandProcessorConfig{
		Marshaler: marshaler,
		GenerateSubscribeTopic: func(p cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) {
			return topicOf(p.CommandName), nil
		},
		SubscriberConstructor: func(p cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: p.HandlerName}, nil)
		},
	})
	if err != nil {
		return err
	}
	return processor.AddHandlers(
		cqrs.NewCommandHandler("reserve-credit", func(ctx context.Context, c *saga.ReserveCredit) error {
			return once(ctx, a.customers, c.Customer, services.Reserve(c.Order, c.Total))
		}),
		cqrs.NewCommandHandler("release-credit", func(ctx context.Context, c *saga.ReleaseCredit) error {
			return once(ctx, a.customers, c.Customer, services.Release(c.Order))
		}),
		cqrs.NewCommandHandler("create-ticket", func(ctx context.Context, c *saga.CreateTicket) error {
			return once(ctx, a.tickets, c.Order, services.CreateTicket)
		}),
		cqrs.NewCommandHandler("cancel-ticket", func(ctx context.Context, c *saga.CancelTicket) error {
			return once(ctx, a.tickets, c.Order, services.CancelTicket)
		}),
		cqrs.NewCommandHandler("authorise-payment", func(ctx context.Context, c *saga.AuthorisePayment) error {
			return once(ctx, a.payments, c.Order, services.Authorise(c.Total))
		}),
		cqrs.NewCommandHandler("approve-order", func(ctx context.Context, c *saga.ApproveOrder) error {
			return once(ctx, a.orders, c.Order, services.Approve)
		}),
		cqrs.NewCommandHandler("reject-order", func(ctx context.Context, c *saga.RejectOrder) error {
			return once(ctx, a.orders, c.Order, services.Reject(c.Reason))
		}),
	)
}

// once executes a command that may come again: its message has the same UUID each time.
func once[S any](ctx context.Context, r *repository.Repository[S], id string, decide aggregate.Decision[S]) error {
	_, err := r.Execute(ctx, id, decide, repository.CommandID(cqrs.OriginalMessageFromCtx(ctx).UUID))
	return err
}

func (a *app) grant(ctx context.Context, customer string, amount int) error {
	_, err := a.customers.Execute(ctx, customer, services.Grant(amount))
	return err
}

func (a *app) place(ctx context.Context, order, customer string, total int) error {
	_, err := a.orders.Execute(ctx, order, services.Place(customer, total))
	return err
}

// outcome waits until an order is approved or rejected.
func (a *app) outcome(ctx context.Context, order string) (services.Order, error) {
	return await(ctx, a.orders, order, func(o services.Order) bool { return o.Status != "placed" })
}

// credit waits until a customer is as wanted, and returns the credit left.
func (a *app) credit(ctx context.Context, customer string, wanted func(services.Customer) bool) (int, error) {
	c, err := await(ctx, a.customers, customer, wanted)
	return c.Credit, err
}

func await[S any](ctx context.Context, r *repository.Repository[S], id string, wanted func(S) bool) (state S, err error) {
	for {
		loaded, err := r.Load(ctx, id)
		if err != nil || wanted(loaded.State) {
			return loaded.State, err
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (a *app) close() error {
	err := a.router.Close()
	for range 2 {
		if e := <-a.ended; !errors.Is(e, context.Canceled) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, a.publisher.Close())
}
