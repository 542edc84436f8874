package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// exampleJournal returns an empty journal.
func exampleJournal(ctx context.Context) *journal.Journal {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	return j
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The topic is the aggregate type. The metadata hold the aggregate's id and the event type.
func Example() {
	ctx := context.Background()
	j := exampleJournal(ctx)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	check(err)

	placed := message.NewMessage(watermill.NewUUID(), []byte(`{"total": 700}`))
	placed.Metadata.Set(publisher.NameKey, "order.placed.v1")
	placed.Metadata.Set(publisher.AggregateIDKey, "1234")
	check(p.Publish("order", placed))
	check(p.Close())

	for event, err := range j.Newest(ctx, "order", 10) {
		check(err)
		fmt.Println(event.Aggregate, event.Number, event.EventType, string(event.Payload))
	}
	// Output: order-1234 1 order.placed.v1 {"total": 700}
}

// AggregateID returns the aggregate's id from other metadata.
func ExampleConfig() {
	ctx := context.Background()
	j := exampleJournal(ctx)
	p, err := publisher.NewPublisher(publisher.Config{
		Journal: j,
		AggregateID: func(_ string, msg *message.Message) (string, error) {
			return msg.Metadata.Get("partition"), nil
		},
		StreamID: "checkout-7", // for messages without a partition: one stream for each pod
	}, nil)
	check(err)

	msg := message.NewMessage(watermill.NewUUID(), nil)
	msg.Metadata.Set("partition", "north")
	check(p.Publish("visit", msg))
	check(p.Publish("visit", message.NewMessage(watermill.NewUUID(), nil)))
	check(p.Close())

	for head, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: "visit"}) {
		check(err)
		fmt.Println(head.Aggregate, head.Version)
	}
	// Unordered output:
	// visit-north 1
	// visit-checkout-7 1
}

func ExampleSetExpectedVersion() {
	p, err := publisher.NewPublisher(publisher.Config{Journal: exampleJournal(context.Background())}, nil)
	check(err)
	open := func() error {
		opened := message.NewMessage(watermill.NewUUID(), nil)
		opened.Metadata.Set(publisher.AggregateIDKey, "alice")
		publisher.SetExpectedVersion(opened, 0) // the account must not exist yet
		return p.Publish("account", opened)
	}
	fmt.Println("first:", open())

	var conflict *journal.ConflictError
	if errors.As(open(), &conflict) {
		fmt.Println("second: the name is taken")
	}
	check(p.Close())
	// Output:
	// first: <nil>
	// second: the name is taken
}

// Messages that are certainly not written can be published again. For the others, resolve the
// attempts first.
func ExamplePublishError() {
	var p message.Publisher // a *publisher.Publisher
	publish := func(messages ...*message.Message) (again []*message.Message, err error) {
		var failed *publisher.PublishError
		if err := p.Publish("order", messages...); !errors.As(err, &failed) {
			return nil, err
		}
		for _, i := range failed.NotWritten() {
			again = append(again, messages[i])
		}
		if n := len(failed.Unknown()); n > 0 {
			return again, fmt.Errorf("resolve %d messages: %w", n, failed)
		}
		return again, nil
	}
	_ = publish
}
