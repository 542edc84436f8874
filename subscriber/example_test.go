package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
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
		fmt.Printf("%s #%d: %s\n", id, number, msg.Metadata.Get(subscriber.NameKey))
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

// A process that does not run for long handles what there is. A router runs once, so each burst has
// its own.
func ExampleBurst_Run() {
	ctx, j := context.Background(), openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")

	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "audit"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	router.AddConsumerHandler("audit", "account", sub, func(msg *message.Message) error {
		fmt.Println(msg.Metadata.Get(subscriber.NameKey))
		return nil
	})
	hint := subscriber.Hint{Aggregate: aggregate.ID{Type: "account", Value: "alice"}, Version: 2}
	left, err := subscriber.Burst{Hints: []subscriber.Hint{hint}}.Run(ctx, router)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left:", left.Aggregates)

	// Output:
	// account.opened.v1
	// account.deposited.v1
	// left: 0
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

// A group can ask for some types only. Events of other types count as handled, so if the group asks
// for more types later, it receives only new events of them.
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

// Each process receives all events that occur from now on, for example to refresh a cache. No
// position is stored.
func ExampleNewBroadcast() {
	j := openNow(newTables())
	config := subscriber.BroadcastConfig{Journal: j, Start: subscriber.Now()}
	one, messagesOfOne := received(subscriber.NewBroadcast(config, watermill.NopLogger{}))
	defer one.Close()
	other, messagesOfOther := received(subscriber.NewBroadcast(config, watermill.NopLogger{}))
	defer other.Close()

	happened(j, "alice", "account.opened.v1")
	show(<-messagesOfOne).Ack()
	show(<-messagesOfOther).Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1
}

// An account whose event keeps failing is parked until an operator unparks it. Other accounts
// continue.
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

// An event that keeps failing is published to another topic, and its account continues with the
// next event.
func ExamplePoisonQueue() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")
	// The queue can be any message.Publisher.
	queue := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 1}, watermill.NopLogger{})
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
	fmt.Printf("%s is poison:\n%s\n", msg.Metadata.Get(subscriber.NameKey), msg.Metadata.Get("reason_poisoned"))
	msg.Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// account-alice #2: account.deposited.v1
	// account.opened.v1 is poison:
	// the message was nacked without a reason (see subscriber.NackReason), 2 times
}

// An event that keeps failing is skipped, and a record of it is stored.
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
	for e, err := range groups.Of(j, "totals", "account").Skipped(ctx, aggregate.ID{}, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("skipped %s #%d, %s:\n%s\n", e.Aggregate, e.Number, e.EventType, e.Reason)
	}
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// account-alice #2: account.deposited.v1
	// skipped account-alice #1, account.opened.v1:
	// the message was nacked without a reason (see subscriber.NackReason), 2 times
}

// An event that keeps failing stops the group for all its members until an operator resumes it.
func ExampleStop() {
	ctx, j := context.Background(), openNow(newTables())
	happened(j, "alice", "account.opened.v1")
	g := groups.Of(j, "totals", "account")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals", Timing: subscriber.Timing{LeaseDuration: time.Second},
		Failures: subscriber.Stop(2), NackResendSleep: time.Millisecond,
	})
	for range 2 {
		show(<-messages).Nack()
	}
	for sub.Stats().Stopped == 0 {
		time.Sleep(time.Millisecond)
	}
	group, err := g.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("stopped by %s #%d:\n%s\n", group.Stopped.Aggregate, group.Stopped.Number, group.Stopped.Reason)
	if err := g.Resume(ctx); err != nil { // after a fix, or after g.Skip
		log.Fatal(err)
	}
	show(<-messages).Ack()
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
	// stopped by account-alice #1:
	// the message was nacked without a reason (see subscriber.NackReason), 2 times
	// account-alice #1: account.opened.v1
}

// An event that fails is retried by itself, and its account continues with the next event at once.
func ExampleDefer() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1", "account.deposited.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "mails",
		Failures: subscriber.Defer(subscriber.Backoff{Pause: 300 * time.Millisecond}),
	})
	defer sub.Close()
	show(<-messages).Nack()
	show(<-messages).Ack()
	show(<-messages).Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #2: account.deposited.v1
	// account-alice #1: account.opened.v1, attempt 2
}

// The middleware reports the error of the handler, so the record of a skipped event contains it.
func ExampleNackReason() {
	ctx, j := context.Background(), openNow(newTables())
	happened(j, "alice", "account.opened.v1")

	handle := subscriber.NackReason(func(*message.Message) ([]*message.Message, error) {
		return nil, errors.New("no address for alice")
	})
	sub, messages := subscribed(subscriber.Config{Journal: j, ConsumerGroup: "mails", Failures: subscriber.Skip(1)})
	msg := <-messages
	if _, err := handle(msg); err != nil { // a Watermill router does this
		msg.Nack()
	}
	for sub.Stats().Skipped == 0 {
		time.Sleep(time.Millisecond)
	}
	for e, err := range groups.Of(j, "mails", "account").Skipped(ctx, aggregate.ID{}, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("skipped %s #%d: %s\n", e.Aggregate, e.Number, e.Reason)
	}
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// skipped account-alice #1: no address for alice, once
}

// A handler writes its effect and the position in one transaction, so the effect happens once.
func ExamplePosition_Commit() {
	client := newTables()
	j := openNow(client)
	table := projection.Table{Name: "deposits", PartitionKey: "account"}
	if err := projection.CreateTable(context.Background(), client, table); err != nil {
		log.Fatal(err)
	}
	happened(j, "alice", "account.deposited.v1")

	sub, messages := subscribed(subscriber.Config{Journal: j, ConsumerGroup: "deposits"})
	msg := <-messages
	position, ok := subscriber.PositionFromContext(msg.Context())
	if !ok {
		log.Fatal("the message has no position")
	}
	err := position.Commit(msg.Context(), func(ctx context.Context, advance subscriber.Advance) error {
		count := types.TransactWriteItem{Update: &types.Update{
			TableName: &table.Name, Key: table.Key("alice"), UpdateExpression: aws.String("ADD deposits :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		}}
		_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{advance.Item, count},
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	msg.Ack()
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("positions stored:", sub.Stats().Positions)

	// Output:
	// positions stored: 1
}

// The subscriber does not wait for a handler that hangs: its message is delivered again, and a
// later answer is ignored.
func ExampleConfig_ackDeadline() {
	j := openNow(newTables())
	happened(j, "alice", "account.opened.v1")

	sub, messages := subscribed(subscriber.Config{
		Journal: j, ConsumerGroup: "totals",
		AckDeadline: 100 * time.Millisecond, NackResendSleep: time.Millisecond,
	})
	defer sub.Close()
	slow := show(<-messages)
	<-slow.Context().Done() // the handler gives up
	show(<-messages).Ack()

	// Output:
	// account-alice #1: account.opened.v1
	// account-alice #1: account.opened.v1, attempt 2
}

// newTables creates the tables of a journal in memory.
func newTables() journal.Client {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	if err := journal.Create(context.Background(), client, journal.Config{Layout: journal.Packed, Shards: 4}); err != nil {
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

// subscribed creates a subscriber and subscribes to all accounts.
func subscribed(config subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message) {
	return received(subscriber.NewSubscriber(config, watermill.NopLogger{}))
}

// received subscribes to all accounts.
func received(sub *subscriber.Subscriber, err error) (*subscriber.Subscriber, <-chan *message.Message) {
	if err != nil {
		log.Fatal(err)
	}
	messages, err := sub.Subscribe(context.Background(), "account")
	if err != nil {
		log.Fatal(err)
	}
	return sub, messages
}

// show prints a message.
func show(msg *message.Message) *message.Message {
	id, number, _ := subscriber.AggregateFromContext(msg.Context())
	fmt.Printf("%s #%d: %s", id, number, msg.Metadata.Get(subscriber.NameKey))
	if attempt, _ := subscriber.AttemptFromContext(msg.Context()); attempt > 1 {
		fmt.Printf(", attempt %d", attempt)
	}
	fmt.Println()
	return msg
}
