package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

var (
	ctx    = context.Background()
	client *dynamodb.Client
	p      *publisher.Publisher
)

// The topic is the aggregate type. The metadata hold the aggregate's id and the event type.
func Example() {
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, watermill.NewStdLogger(false, false))
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	placed := message.NewMessage(watermill.NewUUID(), []byte(`{"total": 700}`))
	placed.Metadata.Set(publisher.NameKey, "order.placed.v1")
	placed.Metadata.Set(publisher.AggregateIDKey, "1234")
	if err := p.Publish("order", placed); err != nil {
		log.Print(err)
	}
}

// AggregateID returns the aggregate's id from other metadata.
func ExampleConfig() {
	var j *journal.Journal
	p, err := publisher.NewPublisher(publisher.Config{
		Journal: j,
		AggregateID: func(_ string, msg *message.Message) (string, error) {
			return msg.Metadata.Get("partition"), nil
		},
		StreamID: "checkout-7", // for messages without a partition: one stream for each pod
	}, nil)
	fmt.Println(p != nil, err)
	// Output: false publisher config: Journal is nil: open one with journal.Open
}

func ExampleExpectVersion() {
	opened := message.NewMessage(watermill.NewUUID(), nil)
	opened.Metadata.Set(publisher.AggregateIDKey, "alice")
	publisher.ExpectVersion(opened, 0) // the account must not exist yet

	err := p.Publish("account", opened)

	var conflict *journal.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println("the name is taken")
	}
}

// Messages that are certainly not written can be published again. For the others, resolve the
// attempts first.
func ExamplePublishError() {
	messages := []*message.Message{ /* ... */ }

	err := p.Publish("order", messages...)

	var failed *publisher.PublishError
	if errors.As(err, &failed) {
		var again []*message.Message
		for _, i := range failed.NotWritten() {
			again = append(again, messages[i])
		}
		fmt.Println(len(again), "to publish again,", len(failed.Unknown()), "to resolve")
	}
}
