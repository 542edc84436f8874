package millrace_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type (
	parcel     struct{ Weight int }
	registered struct{ Weight int }

	registerParcel struct {
		ID     string
		Weight int
	}
)

func (registered) EventType() string { return "parcel.registered.v1" }
func (e registered) Apply(p *parcel) { p.Weight = e.Weight }
func (c registerParcel) decide(parcel) (aggregate.Events[parcel], error) {
	return aggregate.Events[parcel]{registered{c.Weight}}, nil
}

var parcels = aggregate.Define[parcel]("parcel", registered{})

// An App executes a command that comes as a message, and handles the event that the command leads
// to.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
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
	err = app.HandleCommands(command.Handler("register-parcel", repo,
		func(c *registerParcel) (string, aggregate.Decision[parcel]) { return c.ID, c.decide }))
	if err != nil {
		log.Fatal(err)
	}
	err = app.HandleEvents(millrace.Group{Name: "labels", Topics: []string{"parcel"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *registered) error {
			fmt.Printf("print a label for %d g\n", e.Weight)
			stop() // a program runs until a signal comes
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	msg, err := app.Marshaler().Marshal(registerParcel{ID: "p1", Weight: 300})
	if err != nil {
		log.Fatal(err)
	}
	if err := app.Publisher().Publish("commands", msg); err != nil {
		log.Fatal(err)
	}
	if err := app.Run(ctx); err != nil {
		log.Fatal(err)
	}

	// Output:
	// print a label for 300 g
}
