package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

var (
	ctx    = context.Background()
	client *dynamodb.Client
	config = journal.Config{Shards: 16}
	j      *journal.Journal
)

// The examples build on each other and need a DynamoDB: run as one test, they stay right.
func TestTheExamplesWork(t *testing.T) {
	t.Parallel()
	client = testdb.Client(t)
	for _, example := range []func(){ExampleCreate, ExampleOpen, ExampleJournal_Append, ExampleJournal_Events, ExampleJournal_Tail, ExampleJournal_Watch} {
		example()
	}

	head, err := j.Head(t.Context(), aggregate.ID{Type: "account", Value: "42"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, head.Version)
	require.NoError(t, journal.Create(t.Context(), client, config))
	ExampleAdopt()
}

// Tables are made once, before the first process opens them; calling Create again does no harm.
func ExampleCreate() {
	err := journal.Create(ctx, client, journal.Config{Shards: 16})
	if err != nil {
		log.Fatal(err)
	}
}

// Tables of another application are verified and then shared with it.
func ExampleAdopt() {
	err := journal.Adopt(ctx, client, journal.Config{
		Shards:   16,            // as the other application has it
		Resolver: journal.FNV1a, // that of event-store-adapter-go; JavaHash, JSHash, CRC32 and SipHash13 are those of the others
	})
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleOpen() {
	var err error
	j, err = journal.Open(ctx, client, journal.Config{})
	switch {
	case errors.Is(err, journal.ErrTableMissing), errors.Is(err, journal.ErrNoDescriptor):
		log.Fatal("run the program that makes the tables first: ", err)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println(j.Shards(), "shards") // 16 shards
}

// A commit of two events to a new account, and the state after them as a snapshot.
func ExampleJournal_Append() {
	id := aggregate.ID{Type: "account", Value: "42"}
	receipt, err := j.Append(ctx, journal.Commit{
		Aggregate: id,
		Expected:  0, // no events so far
		Events: []journal.Event{
			{ID: "6f1d", Type: "account.opened.v1", Payload: []byte(`{"owner":"Ann"}`)},
			{ID: "6f1e", Type: "account.deposited.v1", Payload: []byte(`{"amount":10}`)},
		},
		Snapshot: &journal.Snapshot{Number: 2, Payload: []byte(`{"balance":10}`)},
	})
	var unknown *journal.OutcomeUnknownError
	switch {
	case errors.Is(err, journal.ErrConflict):
		fmt.Println("somebody was faster: load the account again and decide again")
	case errors.As(err, &unknown):
		written, err := j.Resolve(ctx, unknown)
		fmt.Println("the reply was lost:", written, err)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("the account is at version", receipt.Version) // the account is at version 2
	}
}

// A load is the head, and the events after its snapshot.
func ExampleJournal_Events() {
	id := aggregate.ID{Type: "account", Value: "42"}
	head, err := j.Head(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	from := uint64(1)
	if head.Snapshot != nil && head.Snapshot.Number > 0 {
		from = head.Snapshot.Number + 1
	}
	for record, err := range j.Events(ctx, id, from, head.Version) {
		if err != nil {
			log.Fatal(err) // what came before it is not the whole history
		}
		fmt.Println(record.Number, record.EventType, string(record.Payload))
	}
}

// Everything that a shard holds, in the order of the events' time. To follow it, keep the cursor and come back;
// package subscriber does that, and brings the events of each aggregate into the order of their numbers.
func ExampleJournal_Tail() {
	for shard := range j.Shards() {
		var cursor journal.Cursor
		for more := true; more; {
			page, err := j.Tail(ctx, journal.TailQuery{AggregateType: "account", Shard: shard, After: cursor})
			if err != nil {
				log.Fatal(err)
			}
			for _, record := range page.Records {
				fmt.Println(record.Aggregate, record.Number, record.EventType)
			}
			cursor, more = page.Next, page.More
		}
	}
}

func ExampleJournal_Watch() {
	wake := make(chan struct{}, 1)
	stop := j.Watch("account", func(aggregate.ID, uint64) {
		select {
		case wake <- struct{}{}:
		default: // awake already
		}
	})

	_, err := j.Append(ctx, journal.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: "42"}, Expected: 2, Events: []journal.Event{{Type: "account.closed.v1"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	<-wake
	fmt.Println("something happened to an account")
	stop()
}
