package compress_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/publisher"
)

// A journal that compresses payloads, and reads the payloads that were stored before.
func ExampleGzip() {
	ctx := context.Background()
	db := dynamotest.Open()
	if err := journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Packed, Shards: 4}); err != nil {
		log.Fatal(err)
	}
	gzip, err := compress.Gzip(compress.Config{MinBytes: 512})
	if err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, db.Client(), journal.Config{Encodings: []journal.Encoding{gzip}})
	if err != nil {
		log.Fatal(err)
	}

	id := aggregate.ID{Type: "order", Value: "1"}
	pub, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{strings.Repeat("a long text ", 1_000), "a short one"} {
		msg := message.NewMessage(watermill.NewUUID(), []byte(text))
		msg.Metadata.Set(publisher.AggregateIDKey, id.Value)
		if err := pub.Publish(id.Type, msg); err != nil {
			log.Fatal(err)
		}
	}
	for _, view := range []*journal.Journal{j, j.Raw()} {
		for record, err := range view.Events(ctx, id, 1, 2) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("event %d: under 200 bytes %t, encoding %q\n", record.Number, len(record.Payload) < 200, record.Encoding)
		}
	}
	db.Close()
	// Output:
	// event 1: under 200 bytes false, encoding ""
	// event 2: under 200 bytes true, encoding ""
	// event 1: under 200 bytes true, encoding "gzip"
	// event 2: under 200 bytes true, encoding ""
}
