package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/repository"
)

type (
	person     struct{ Name string }
	registered struct{ Name string }

	basket struct{ Items int }
	added  struct{ Items int }
)

func (registered) EventType() string { return "person.registered.v1" }
func (e registered) Apply(p *person) { p.Name = e.Name }
func (added) EventType() string      { return "basket.added.v1" }
func (e added) Apply(b *basket)      { b.Items += e.Items }

var (
	personDefinition = aggregate.Define[person]("person", registered{})
	basketDefinition = aggregate.Define[basket]("basket", added{})
)

// Only the events of persons are encrypted. A plain event of a person is refused, by writers and by
// readers.
func ExampleForTypes() {
	ctx, client := context.Background(), dynamotest.Open().Client()
	// 32 bytes from your secrets, or AWS KMS
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	if err != nil {
		log.Fatal(err)
	}
	secret, err := encrypt.Open(ctx, client, wrapper, encrypt.KeysConfig{})
	if err != nil {
		log.Fatal(err)
	}

	config := journal.Config{
		Layout: journal.Packed, Shards: 4,
		Encodings:      []journal.Encoding{journal.ForTypes(secret, "person")},
		RequiredByType: map[string][]string{"person": {secret.Name()}},
	}
	if err := journal.Create(ctx, client, config); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, client, config)
	if err != nil {
		log.Fatal(err)
	}
	persons, err := repository.New(j, personDefinition, repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	baskets, err := repository.New(j, basketDefinition, repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = persons.Execute(ctx, "1", func(person) (aggregate.Events[person], error) {
		return aggregate.Events[person]{registered{"Ann"}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = baskets.Execute(ctx, "1", func(basket) (aggregate.Events[basket], error) {
		return aggregate.Events[basket]{added{2}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}

	ann := aggregate.ID{Type: "person", Value: "1"}
	for _, id := range []aggregate.ID{ann, {Type: "basket", Value: "1"}} {
		for record, err := range j.Raw().AllEvents(ctx, id) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s %q %t\n", record.EventType, record.Encoding, json.Valid(record.Payload))
		}
	}

	config.Encodings = nil // a program that does not encrypt
	if j, err = journal.Open(ctx, client, config); err != nil {
		log.Fatal(err)
	}
	if persons, err = repository.New(j, personDefinition, repository.Config{}); err != nil {
		log.Fatal(err)
	}
	_, err = persons.Execute(ctx, "2", func(person) (aggregate.Events[person], error) {
		return aggregate.Events[person]{registered{"Bob"}}, nil
	})
	fmt.Println("refused:", errors.As(err, new(*journal.EncodingError)))

	// Output:
	// person.registered.v1 "aes-gcm" false
	// basket.added.v1 "" true
	// refused: true
}
