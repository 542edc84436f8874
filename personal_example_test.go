package millrace_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/repository"
)

type (
	person    struct{ Name string }
	enrolled  struct{ Name string }
	forgotten struct{}
)

func (enrolled) EventType() string  { return "person.registered.v1" }
func (forgotten) EventType() string { return "person.forgotten.v1" }
func (e enrolled) Apply(p *person)  { p.Name = e.Name }
func (forgotten) Apply(p *person)   { p.Name = "" }

var persons = aggregate.Define[person]("person", enrolled{}, forgotten{})

// The events of persons are encrypted, and those of other types are not. To forget a person, append
// an event to which read models react, and destroy the key.
func ExampleApp_Forget() {
	ctx := context.Background()
	// In production, use a key of AWS KMS, or a secret.
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes))
	if err != nil {
		log.Fatal(err)
	}
	app, err := millrace.Open(ctx, dynamotest.Open().Client(), millrace.Config{
		Journal:  journal.Config{Layout: journal.Packed, Shards: 4},
		Personal: millrace.Personal{Types: []string{persons.Type()}, Wrapper: wrapper},
	})
	if err != nil {
		log.Fatal(err)
	}
	repo, err := millrace.Repository(app, persons, repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = app.Handle(millrace.Group{Name: "names", Topics: []string{"person"}}, func(msg *message.Message) error {
		fmt.Println("the read model handles", msg.Metadata.Get("name"))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	stop, err := app.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}

	for _, event := range []aggregate.Event[person]{enrolled{"Ada"}, forgotten{}} {
		ada, err := repo.Execute(ctx, "7", func(person) (aggregate.Events[person], error) {
			return aggregate.Events[person]{event}, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		if event == (forgotten{}) {
			fmt.Println("forget:", app.Forget(ctx, ada.ID, ada.Version))
		}
	}
	_, err = repo.Load(ctx, "7")
	fmt.Println("the key is destroyed:", errors.Is(err, journal.ErrKeyDestroyed))
	if err := stop(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// the read model handles person.registered.v1
	// the read model handles person.forgotten.v1
	// forget: <nil>
	// the key is destroyed: true
}
