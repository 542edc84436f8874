package millrace_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
)

// ParcelWeighed is a message to other systems.
type ParcelWeighed struct {
	Parcel string
	Grams  int
}

func (ParcelWeighed) EventType() string { return "ParcelWeighed" }

// ParcelArrived is a message of another system.
type ParcelArrived struct {
	Parcel string
	Grams  int
}

func (ParcelArrived) EventType() string { return "ParcelArrived" }

// openPost opens an App with a repository of parcels.
func openPost(ctx context.Context) (*millrace.App, *repository.Repository[parcel]) {
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	app, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: "post-", Journal: journal.Config{Layout: journal.Packed, Shards: 4},
	})
	if err != nil {
		log.Fatal(err)
	}
	repo, err := millrace.Repository(app, parcels, repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return app, repo
}

// Events become messages of a broker, here Watermill's gochannel.
func ExampleApp_Forward() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	app, repo := openPost(ctx)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	_, err := app.Forward(millrace.Group{Name: "parcels-out", Topics: []string{"parcel"}}, forward.Config{Publisher: broker},
		forward.On("parcels", func(_ context.Context, e registered, r *journal.Record) ([]ParcelWeighed, error) {
			return []ParcelWeighed{{Parcel: r.Aggregate.Value, Grams: e.Weight}}, nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	end, err := app.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}

	if _, err := repo.Execute(ctx, "7", registerParcel{ID: "7", Weight: 200}.decide); err != nil {
		log.Fatal(err)
	}
	messages, err := broker.Subscribe(ctx, "parcels")
	if err != nil {
		log.Fatal(err)
	}
	msg := <-messages
	fmt.Println(msg.Metadata.Get(forward.NameKey), msg.Metadata.Get(forward.KeyKey), string(msg.Payload))
	msg.Ack()
	fmt.Println(end(), broker.Close()) // in this order: the App uses the publisher
	stop()

	// Output:
	// ParcelWeighed 7 {"Parcel":"7","Grams":200}
	// <nil> <nil>
}

// Messages of a broker, here Watermill's gochannel, are commands. A message that comes twice is
// executed once.
func ExampleApp_Receive() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	app, repo := openPost(ctx)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	key := func(msg *message.Message) string { return msg.Metadata.Get("parcel") }
	inbox, err := app.Receive(millrace.Group{Name: "arrivals"},
		millrace.Inbox{Subscriber: broker, Topics: []string{"arrivals"}, Receive: receive.Config{Key: key}},
		command.Handler("register", repo, func(m *ParcelArrived) (string, aggregate.Decision[parcel]) {
			return m.Parcel, registerParcel{Weight: m.Grams}.decide
		}))
	if err != nil {
		log.Fatal(err)
	}
	end, err := app.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}

	for range 2 {
		msg := message.NewMessage("scan-1", []byte(`{"Parcel":"7","Grams":200}`))
		msg.Metadata.Set("parcel", "7")
		if err := broker.Publish("arrivals", msg); err != nil {
			log.Fatal(err)
		}
	}
	// The messages of parcel 7 are events 1 and 2 of an aggregate of the journal.
	last := aggregate.ID{Type: inbox.Topic(), Value: "7"}
	if err := app.Groups().WaitApplied(ctx, "arrivals", last, 2); err != nil {
		log.Fatal(err)
	}
	loaded, err := repo.Load(ctx, "7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(loaded.State.Weight, "g, version", loaded.Version)
	fmt.Println(end(), broker.Close())
	stop()

	// Output:
	// 200 g, version 1
	// <nil> <nil>
}
