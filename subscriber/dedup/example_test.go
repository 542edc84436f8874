package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// Of two processes that get the same message, one is told that it is new. Watermill's Deduplicator
// asks like this.
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

// Events are forwarded to another transport, twice, as a forwarder does that crashes at the wrong
// moment. Behind it each is handled once, and one that fails comes again.
func ExamplePositions() {
	ctx, client := context.Background(), dynamotest.Open().Client() // any *dynamodb.Client
	check(journal.Create(ctx, client, journal.Config{Shards: 4}))
	check(dedup.CreateTable(ctx, client, dedup.TableConfig{}))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	events, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "forwarder"}, nil)
	check(err)
	transport := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil) // Kafka, say
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
