package subscriber_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func ExampleSubscriber_Subscribe() {
	ctx, j := context.Background(), openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")

	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "audit"}, watermill.NewSlogLogger(nil))
	if err != nil {
		log.Fatal(err)
	}
	messages, err := sub.Subscribe(ctx, "account")
	if err != nil {
		log.Fatal(err)
	}
	for msg := range messages {
		id, number, _ := subscriber.AggregateFromContext(msg.Context())
		fmt.Printf("%s #%d: %s\n", id, number, msg.Metadata.Get(subscriber.MetadataName))
		msg.Ack()
		if number == 2 {
			break
		}
	}
	if err := sub.Close(); err != nil { // stores the positions
		log.Fatal(err)
	}

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #2: account.deposited.v1
}

// Where a group begins is fixed when its first member subscribes.
func ExampleAt() {
	client := newTables()
	year := time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	happened(openAt(client, year.Add(-time.Minute)), "alice", "account.opened.v1", "account.deposited.v1")
	happened(openAt(client, year.Add(time.Minute)), "alice", "account.withdrawn.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: openNow(client), ConsumerGroup: "report",
		Start: subscriber.At(year),
	})
	defer sub.Close()
	show(<-messages).Ack()

	// Output:
	// account-alice #3: account.withdrawn.v1
}

// A group that needs few types is not sent the others. They count as done: a group that asks for
// more later gets what is new.
func ExampleConfig_eventTypes() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1", "account.deposited.v1", "account.closed.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "mails",
		EventTypes: []string{"account.opened.v1", "account.closed.v1"},
	})
	defer sub.Close()
	for range 2 {
		show(<-messages).Ack()
	}
	fmt.Println(sub.Stats().Filtered, "passed over")

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #4: account.closed.v1
	// 2 passed over
}

// Each process hears of all events that occur from now on, to refresh a cache say. Nothing is
// stored.
func ExampleConfig_broadcast() {
	j := openNow(newTables())
	config := subscriber.Config{Journal: j, Broadcast: true, Start: subscriber.Now()}
	one, messagesOfOne := subscribed(config)
	defer one.Close()
	other, messagesOfOther := subscribed(config)
	defer other.Close()

	happened(j, "alice", "account.opened.v1")
	show(<-messagesOfOne).Ack()
	show(<-messagesOfOther).Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1
}

// An account that keeps failing waits, in order, until somebody has mended it. The others go on.
func ExamplePark() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals",
		Failures: subscriber.Park(3), NackResendSleep: time.Millisecond,
	})
	defer sub.Close()
	for range 3 {
		show(<-messages).Nack()
	}
	for sub.Stats().Parked == 0 {
		time.Sleep(time.Millisecond)
	}
	happened(j, "bob", "account.opened.v1")
	show(<-messages).Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// account-alice #1: account.opened.v1, attempt 3
	// account-bob #1: account.opened.v1
}

// An event that keeps failing goes elsewhere, and its account goes on without it.
func ExamplePoisonQueue() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")
	queue := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 1}, watermill.NopLogger{}) // any message.Publisher
	poisoned, err := queue.Subscribe(context.Background(), "poison")
	if err != nil {
		log.Fatal(err)
	}

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals",
		Failures: subscriber.PoisonQueue(2, queue, "poison"), NackResendSleep: time.Millisecond,
	})
	defer sub.Close()
	for range 2 {
		show(<-messages).Nack()
	}
	show(<-messages).Ack()
	msg := <-poisoned
	fmt.Println(msg.Metadata.Get(subscriber.MetadataName), "is poison:", msg.Metadata.Get("reason_poisoned"))
	msg.Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// account-alice #2: account.deposited.v1
	// account.opened.v1 is poison: the message was nacked without a reason (see subscriber.NackReason), 2 times
}

// An event that keeps failing is passed over, and a record tells which it was.
func ExampleSkip() {
	ctx, j := context.Background(), openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals",
		Failures: subscriber.Skip(2), NackResendSleep: time.Millisecond,
	})
	for range 2 {
		show(<-messages).Nack()
	}
	show(<-messages).Ack()
	for e, err := range groups.New(j).Skipped(ctx, "totals", "account", aggregate.ID{}, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("skipped %s #%d, %s: %s\n", e.Aggregate, e.Number, e.EventType, e.Reason)
	}
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// account-alice #2: account.deposited.v1
	// skipped account-alice #1, account.opened.v1: the message was nacked without a reason (see subscriber.NackReason), 2 times
}

// An event that keeps failing stops the group, for all its members, until somebody has mended the
// cause.
func ExampleStop() {
	ctx, j := context.Background(), openNow(newTables())
	happened(j, "alice", "account.opened.v1")
	g := groups.New(j)

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals", LeaseDuration: time.Second,
		Failures: subscriber.Stop(2), NackResendSleep: time.Millisecond,
	})
	for range 2 {
		show(<-messages).Nack()
	}
	for sub.Stats().Stopped == 0 {
		time.Sleep(time.Millisecond)
	}
	group, err := g.Get(ctx, "totals", "account")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("stopped by %s #%d: %s\n", group.Stopped.Aggregate, group.Stopped.Number, group.Stopped.Reason)
	if err := g.Resume(ctx, "totals", "account"); err != nil { // mended, or g.Skip before
		log.Fatal(err)
	}
	show(<-messages).Ack()
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// stopped by account-alice #1: the message was nacked without a reason (see subscriber.NackReason), 2 times
	// account-alice #1: account.opened.v1
}

// A handler that hangs is not waited for: its message comes again, and what it answers later does
// not count.
func ExampleConfig_ackDeadline() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals",
		AckDeadline: 100 * time.Millisecond, NackResendSleep: time.Millisecond,
	})
	defer sub.Close()
	slow := show(<-messages)
	<-slow.Context().Done() // tells the handler to give up
	show(<-messages).Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
}

// newTables makes the tables of a journal in memory.
func newTables() journal.Client {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	if err := journal.Create(context.Background(), client, journal.Config{Shards: 4}); err != nil {
		log.Fatal(err)
	}
	return client
}

func openNow(client journal.Client) *journal.Journal { return openBy(client, time.Now) }

// openAt opens a journal whose events occur at a time.
func openAt(client journal.Client, at time.Time) *journal.Journal {
	return openBy(client, func() time.Time { return at })
}

func openBy(client journal.Client, clock func() time.Time) *journal.Journal {
	j, err := journal.Open(context.Background(), client, journal.Config{Now: clock})
	if err != nil {
		log.Fatal(err)
	}
	return j
}

// happened publishes events of an account.
func happened(j *journal.Journal, id string, types ...string) {
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	var messages []*message.Message
	for _, eventType := range types {
		msg := message.NewMessage(watermill.NewUUID(), []byte("{}"))
		msg.Metadata.Set(publisher.AggregateIDKey, id)
		msg.Metadata.Set(publisher.NameKey, eventType)
		messages = append(messages, msg)
	}
	if err := p.Publish("account", messages...); err != nil {
		log.Fatal(err)
	}
	if err := p.Close(); err != nil {
		log.Fatal(err)
	}
}

// subscribed makes a subscriber and subscribes to all accounts.
func subscribed(config subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message) {
	sub, err := subscriber.NewSubscriber(config, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := sub.Subscribe(context.Background(), "account")
	if err != nil {
		log.Fatal(err)
	}
	return sub, messages
}

// show prints what came.
func show(msg *message.Message) *message.Message {
	id, number, _ := subscriber.AggregateFromContext(msg.Context())
	fmt.Printf("%s #%d: %s", id, number, msg.Metadata.Get(subscriber.MetadataName))
	if attempt, _ := subscriber.AttemptFromContext(msg.Context()); attempt > 1 {
		fmt.Printf(", attempt %d", attempt)
	}
	fmt.Println()
	return msg
}
