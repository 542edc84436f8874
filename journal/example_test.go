package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
	"github.com/millrace-dev/millrace/publisher"
)

var (
	ctx    = context.Background()
	client *dynamodb.Client
	config = journal.Config{Shards: 16}
	j      *journal.Journal
)

// Tables are created once, before the first process opens them. Calling Create again is safe.
func ExampleCreate() {
	err := journal.Create(ctx, client, journal.Config{Shards: 16})
	if err != nil {
		log.Fatal(err)
	}
}

// Tables of another application are verified and then shared with it.
func ExampleAdopt() {
	err := journal.Adopt(ctx, client, journal.Config{
		Shards: 16, // like the other application
		// FNV1a is for event-store-adapter-go. JavaHash, JSHash, CRC32 and SipHash13 are for the
		// others.
		Resolver: resolver.FNV1a,
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

// deposit stands for the other program.
func deposit() {
	if err := publish(j, "42", "account.opened.v1", "account.deposited.v1", "account.closed.v1"); err != nil {
		log.Fatal(err)
	}
}

// publish writes events of an account.
func publish(j *journal.Journal, account string, types ...string) error {
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	var messages []*message.Message
	for _, eventType := range types {
		msg := message.NewMessage(watermill.NewUUID(), []byte("{}"))
		msg.Metadata.Set(publisher.AggregateIDKey, account)
		msg.Metadata.Set(publisher.NameKey, eventType)
		messages = append(messages, msg)
	}
	return p.Publish("account", messages...)
}

// The head of an aggregate holds its version, and often a snapshot of its state.
func ExampleJournal_Head() {
	head, err := j.Head(ctx, aggregate.ID{Type: "account", Value: "42"})
	switch {
	case errors.Is(err, journal.ErrNotFound):
		fmt.Println("no such account")
	case err != nil:
		log.Fatal(err)
	case !head.DeletedAt.IsZero():
		fmt.Println("deleted after event", head.Version)
	default:
		fmt.Println(head.Version, "events") // 3 events
	}
}

// A load reads the head, and the events after its snapshot.
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
			log.Fatal(err) // the events before the error are not the whole history
		}
		fmt.Println(record.Number, record.EventType, string(record.Payload))
	}
}

// List all accounts with their versions.
func ExampleJournal_Heads() {
	for head, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: "account"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(head.Aggregate, head.Version) // account-42 3
	}
}

// Read the events of accounts of the last hour.
func ExampleJournal_Tail() {
	for record, err := range j.Tail(ctx, "account", time.Now().Add(-time.Hour)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.OccurredAt, record.Aggregate, record.Number, record.EventType)
	}
}
