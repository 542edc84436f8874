package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// Two processes receive the same message. Only for the first of them it is new.
func ExampleKeys() {
	ctx, client := context.Background(), dynamotest.Open().Client() // any *dynamodb.Client
	check(dedup.CreateTable(ctx, client, dedup.TableConfig{}))
	for range 2 {
		keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "mails", Window: time.Hour})
		check(err)
		duplicate, err := keys.IsDuplicate(ctx, "order-1 was placed")
		check(err)
		fmt.Println(duplicate)
	}

	// Output:
	// false
	// true
}

// A handler deduplicates messages by their UUIDs.
func ExampleUUID() {
	ctx, client := context.Background(), dynamotest.Open().Client() // any *dynamodb.Client
	check(dedup.CreateTable(ctx, client, dedup.TableConfig{}))
	keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "mails", Window: 24 * time.Hour})
	check(err)
	deduplicator := &middleware.Deduplicator{
		Repository: keys, KeyFactory: dedup.UUID, Timeout: 10 * time.Second,
	}
	handle := deduplicator.Middleware(func(msg *message.Message) ([]*message.Message, error) {
		fmt.Println("send a mail for", string(msg.Payload))
		return nil, nil
	})
	for range 2 {
		_, err := handle(message.NewMessage("42", []byte("order-1")))
		check(err)
	}

	// Output:
	// send a mail for order-1
}

// A forwarder sends each event twice to another transport, as after a crash. The handler behind the
// transport handles each event once, except for an event that failed.
func ExamplePositions() {
	ctx, client := context.Background(), dynamotest.Open().Client() // any *dynamodb.Client
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	check(dedup.CreateTable(ctx, client, dedup.TableConfig{}))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	events, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "forwarder"}, nil)
	check(err)
	// For example Kafka.
	transport := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil)
	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "mails"})
	check(err)

	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	router.AddHandler("forward", "order", events, "orders", transport, func(msg *message.Message) ([]*message.Message, error) {
		return message.Messages{msg.Copy(), msg.Copy()}, nil
	})
	failed, placed := false, make(chan string)
	router.AddConsumerHandler("mails", "orders", transport, func(msg *message.Message) error {
		if !failed {
			failed = true
			return errors.New("no mail yet")
		}
		placed <- string(msg.Payload)
		return nil
	}).AddMiddleware(positions.Middleware)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	<-router.Running()

	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	check(err)
	for _, payload := range []string{"first", "second", "third"} {
		msg := message.NewMessage(watermill.NewUUID(), []byte(payload))
		msg.Metadata.Set(publisher.AggregateIDKey, "1234")
		check(p.Publish("order", msg))
	}
	for range 3 {
		fmt.Println(<-placed)
	}
	check(router.Close())
	check(<-ended)
	check(p.Close())

	// Output:
	// first
	// second
	// third
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
