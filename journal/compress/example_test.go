package compress_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
)

// A journal that compresses what it stores, and reads what was stored before as it is.
func ExampleGzip() {
	ctx := context.Background()
	db := dynamotest.Open()
	if err := journal.Create(ctx, db.Client(), journal.Config{Shards: 4}); err != nil {
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
	_, err = eventlog.Of(j).Append(ctx, eventlog.Commit{Aggregate: id, Events: []eventlog.Event{
		{Type: "order.noted.v1", Payload: []byte(strings.Repeat("a long text ", 1_000))},
		{Type: "order.noted.v1", Payload: []byte("a short one")},
	}})
	if err != nil {
		log.Fatal(err)
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
