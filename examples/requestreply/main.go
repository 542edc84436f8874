// Command requestreply sends a command and waits for the reply of its handler, with Watermill's
// requestreply component. Each process receives all replies by a broadcast, and ignores those of
// other processes.
//
//	go run ./examples/requestreply
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/components/requestreply"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// Quote is a command.
type Quote struct {
	Item   string
	Amount int
}

// Price is the reply to Quote.
type Price struct{ Cents int }

const (
	requests = "quote-request"
	replies  = "quote-reply"
	timeout  = 30 * time.Second
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := dynamo.Client(ctx)
	check(err)
	// creates the tables if they are missing
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	j, err := journal.Open(ctx, client, journal.Config{})
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
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return requests, nil },
		// Requests for the same item stay in order; other requests run concurrently.
		OnSend: func(params cqrs.CommandBusOnSendParams) error {
			params.Message.Metadata.Set(publisher.AggregateIDKey, params.Command.(*Quote).Item)
			return nil
		},
	})
	check(err)

	// A broadcast has no consumer group, so nothing remains when a process ends.
	listener, err := subscriber.NewBroadcast(subscriber.BroadcastConfig{Journal: j, Start: subscriber.Now()}, nil)
	check(err)
	defer func() { check(listener.Close()) }()
	backend, err := requestreply.NewPubSubBackend(requestreply.PubSubBackendConfig{
		Publisher:              p,
		GeneratePublishTopic:   func(requestreply.PubSubBackendPublishParams) (string, error) { return replies, nil },
		GenerateSubscribeTopic: func(requestreply.PubSubBackendSubscribeParams) (string, error) { return replies, nil },
		SubscriberConstructor: func(requestreply.PubSubBackendSubscribeParams) (message.Subscriber, error) {
			return listener, nil // its subscription ends with the request
		},
		// The caller receives the error. A nacked request would block all later ones.
		AckCommandErrors: true,
	}, requestreply.BackendPubsubJSONMarshaler[Price]{})
	check(err)

	commands, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
		Marshaler:              marshaler,
		GenerateSubscribeTopic: func(cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return requests, nil },
		SubscriberConstructor: func(params cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.HandlerName}, nil)
		},
	})
	check(err)
	check(commands.AddHandlers(requestreply.NewCommandHandlerWithResult("prices", backend, func(_ context.Context, q *Quote) (Price, error) {
		return Price{Cents: 250 * q.Amount}, nil
	})))

	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	reply, err := requestreply.SendWithReply(ctx, bus, backend, &Quote{Item: "tea", Amount: 3})
	check(err)
	check(reply.Error) // the error of the handler
	fmt.Println("price:", reply.HandlerResult.Cents)
	check(router.Close())
	check(<-ended)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
