package receive_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/subscriber"
)

// A router stores the messages of a broker, here Watermill's gochannel, in the journal, and a
// consumer group handles them there.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := receive.New(receive.Config{
		Publisher: p, Topic: "payments-inbox",
		Key: func(msg *message.Message) string { return msg.Metadata.Get("order") },
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "payments"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	router.AddConsumerHandler("receive", "payments", broker, inbox.Handle)
	router.AddConsumerHandler("handle", inbox.Topic(), sub, func(msg *message.Message) error {
		fmt.Printf("order %s: %s\n", msg.Metadata.Get("order"), msg.Payload)
		stop()
		return nil
	})

	paid := message.NewMessage("payment-1", []byte(`{"cents": 1250}`))
	paid.Metadata.Set("order", "7")
	if err := broker.Publish("payments", paid); err != nil {
		log.Fatal(err)
	}
	if err := router.Run(ctx); err != nil { // until ctx ends; it closes both subscribers
		log.Fatal(err)
	}
	fmt.Println("stored:", inbox.Stats().Stored)

	// Output:
	// order 7: {"cents": 1250}
	// stored: 1
}
