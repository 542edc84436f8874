package encrypt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/publisher"
)

// To forget a customer, destroy its key. The events stay, but nobody can read them any more.
func ExampleOpen() {
	ctx := context.Background()
	db := dynamotest.Open()

	// Once, for all processes.
	if err := journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Packed, Shards: 4}); err != nil {
		log.Fatal(err)
	}

	// 32 bytes from your secrets, or AWS KMS.
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	if err != nil {
		log.Fatal(err)
	}
	secret, err := encrypt.Open(ctx, db.Client(), wrapper, encrypt.KeysConfig{})
	if err != nil {
		log.Fatal(err)
	}
	gzip, err := compress.Gzip(compress.Config{})
	if err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, db.Client(), journal.Config{Encodings: []journal.Encoding{gzip, secret}})
	if err != nil {
		log.Fatal(err)
	}

	ann := aggregate.ID{Type: "customer", Value: "42"}
	pub, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		log.Fatal(err)
	}
	registered := message.NewMessage(watermill.NewUUID(), []byte(`{"name":"Ann"}`))
	registered.Metadata.Set(publisher.AggregateIDKey, ann.Value)
	if err := pub.Publish(ann.Type, registered); err != nil {
		log.Fatal(err)
	}
	show := func() {
		for record, err := range j.Events(ctx, ann, 1, 1) {
			switch {
			case errors.Is(err, journal.ErrKeyDestroyed):
				fmt.Println("nobody can read it any more")
			case err != nil:
				log.Fatal(err)
			default:
				fmt.Println(string(record.Payload))
			}
		}
	}

	show()
	if err := secret.Destroy(ctx, ann); err != nil {
		log.Fatal(err)
	}
	show()
	db.Close()
	// Output:
	// {"name":"Ann"}
	// nobody can read it any more
}
