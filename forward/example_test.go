package forward_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// A router passes the events of a consumer group to a Forwarder, which publishes them to a broker,
// here Watermill's gochannel.
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
	repo, err := repository.New(j, orders, repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	f, err := forward.New(forward.Config{Publisher: broker, Definitions: []aggregate.AnyDefinition{orders}},
		forward.On("orders", func(_ context.Context, e placed, r *journal.Record) ([]OrderPlaced, error) {
			return []OrderPlaced{{Order: r.Aggregate.Value, Item: e.Item}}, nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "orders-out", NoReplay: true}, nil)
	if err != nil {
		log.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	router.AddConsumerHandler("orders-out", "order", sub, f.Handle)
	router.AddConsumerHandler("other system", "orders", broker, func(msg *message.Message) error {
		fmt.Println(msg.Metadata.Get(forward.NameKey), msg.Metadata.Get(forward.KeyKey), string(msg.Payload))
		stop()
		return nil
	})

	_, err = repo.Execute(ctx, "7", func(order) (aggregate.Events[order], error) { return aggregate.Events[order]{placed{"tea"}}, nil })
	if err != nil {
		log.Fatal(err)
	}
	if err := router.Run(ctx); err != nil { // until ctx ends
		log.Fatal(err)
	}

	// Output:
	// OrderPlaced 7 {"Order":"7","Item":"tea"}
}
