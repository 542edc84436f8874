package subscriber_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience is how long a test waits for something that must happen. It limits a failing test, and
// is no claim about speed.
const patience = 2 * time.Minute

const topic = "account"

func account(id string) aggregate.ID { return aggregate.ID{Type: topic, Value: id} }

// setup creates tables for the test and opens them.
func setup(t *testing.T, shards int) *journal.Journal {
	t.Helper()
	return open(t, create(t, shards))
}

func create(t *testing.T, shards int) *dynamodb.Client {
	t.Helper()
	return createIn(t, journal.Classic, shards)
}

func createIn(t *testing.T, layout journal.Layout, shards int) *dynamodb.Client {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: shards, Layout: layout}))
	return client
}

// layouts contains the layouts for tests of every layout.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// eachLayout runs a test with tables of each layout.
func eachLayout(t *testing.T, shards int, test func(t *testing.T, client *dynamodb.Client)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) { test(t, createIn(t, layout, shards)) })
}

// eachLayoutInFakeTime is like eachLayout, in fake time.
func eachLayoutInFakeTime(t *testing.T, shards int, test func(t *testing.T, client *dynamodb.Client)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) { test(t, createIn(t, layout, shards)) })
	})
}

// nameOf names an item of the journal table by its aggregate and its number, in either layout.
func nameOf(item map[string]types.AttributeValue) string {
	switch sort := item["skey"].(type) {
	case *types.AttributeValueMemberS:
		return sort.Value
	case *types.AttributeValueMemberN:
		partition, _ := item["pkey"].(*types.AttributeValueMemberS)
		return strings.Replace(partition.Value, "/", "-", 1) + "-" + sort.Value
	}
	return ""
}

func open(t *testing.T, client journal.Client) *journal.Journal {
	t.Helper()
	return testjournal.Open(t, client, journal.Config{})
}

// quick returns a config whose intervals suit tests. The lease has its default, so that a slow
// machine does not make a member lose it. TrailingDelay and CloseTimeout leave time for the same
// reason.
func quick(j *journal.Journal) subscriber.Config {
	return subscriber.Config{
		Journal: j, ConsumerGroup: "group",
		Timing: subscriber.Timing{
			PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond,
			TrailingDelay: 5 * time.Second, CommitInterval: 20 * time.Millisecond,
		},
		NackResendSleep: time.Millisecond, MaxNackResendSleep: time.Millisecond, CloseTimeout: 5 * time.Second,
	}
}

// unanswered returns a config for a test that leaves a message without an answer, so that Close
// does not wait long for it.
func unanswered(config subscriber.Config) subscriber.Config {
	config.CloseTimeout = time.Second
	return config
}

// configured is the configuration of a group's subscriber or of a broadcast.
type configured interface {
	subscriber.Config | subscriber.BroadcastConfig
}

func newSubscriber[C configured](t *testing.T, config C, limits ...subscriber.Limit) *subscriber.Subscriber {
	t.Helper()
	var sub *subscriber.Subscriber
	var err error
	switch config := any(config).(type) {
	case subscriber.Config:
		sub, err = subscriber.NewSubscriber(config, testLogger(t))
	case subscriber.BroadcastConfig:
		sub, err = subscriber.NewBroadcast(config, testLogger(t))
	}
	require.NoError(t, err)
	sub.Limit(limits...)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	return sub
}

// closes closes a subscriber, and fails if Close does not return.
func closes(t *testing.T, sub *subscriber.Subscriber) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- sub.Close() }()
	require.NoError(t, await.Receive(t, closed, "Close must return"))
}

// subscribe starts a new subscriber on the topic.
func subscribe[C configured](t *testing.T, config C, limits ...subscriber.Limit) (*subscriber.Subscriber, <-chan *message.Message) {
	t.Helper()
	sub := newSubscriber(t, config, limits...)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	return sub, messages
}

// write appends n events to an aggregate. after is the number of events that it has so far.
func write(t *testing.T, j *journal.Journal, id string, after, n int) {
	t.Helper()
	for n > 0 {
		commit := storage.Commit{Aggregate: account(id), Expected: uint64(after)}
		for range min(n, storage.MaxEvents) {
			after++
			commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: fmt.Appendf(nil, "%s/%d", id, after)})
		}
		n -= len(commit.Events)
		_, err := j.Internal().Append(context.Background(), commit)
		require.NoError(t, err)
	}
}

// earlier opens the tables in a process whose events are a minute old.
func earlier(t *testing.T, client journal.Client) *journal.Journal {
	t.Helper()
	return at(t, client, func() time.Time { return time.Now().Add(-time.Minute) })
}

// receive returns the next message.
func receive(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	return await.Receive(t, messages, "a message")
}

// receiveAll acks n messages and returns their payloads.
func receiveAll(t *testing.T, messages <-chan *message.Message, n int) (payloads []string) {
	t.Helper()
	for range n {
		msg := receive(t, messages)
		payloads = append(payloads, string(msg.Payload))
		msg.Ack()
	}
	return payloads
}

// expect returns the payloads of an aggregate's events from..to.
func expect(id string, from, to int) (payloads []string) {
	for n := from; n <= to; n++ {
		payloads = append(payloads, fmt.Sprintf("%s/%d", id, n))
	}
	return payloads
}

var eventually = await.True

// deliveries records the delivered messages and checks their order.
type deliveries struct {
	mu   sync.Mutex
	last map[string]uint64 // the highest acked number of each aggregate
	all  int
}

// note is called before a message is acked. It returns an error if the message is neither the next
// one of its aggregate nor one that was delivered before.
func (d *deliveries) note(msg *message.Message) error {
	id, number, ok := subscriber.AggregateFromContext(msg.Context())
	if !ok {
		return fmt.Errorf("message %s carries no aggregate", msg.UUID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all++
	if number > d.last[id.Value]+1 {
		return fmt.Errorf("event %d of %s came after event %d", number, id, d.last[id.Value])
	}
	if want := fmt.Sprintf("%s/%d", id.Value, number); string(msg.Payload) != want {
		return fmt.Errorf("event %d of %s has the payload %q", number, id, msg.Payload)
	}
	d.last[id.Value] = max(number, d.last[id.Value])
	return nil
}

func (d *deliveries) has(id string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last[id]
}

// testLogger logs the subscriber's errors to the test.
func testLogger(t *testing.T) watermill.LoggerAdapter {
	return &logger{t: t, done: t.Context()}
}

type logger struct {
	watermill.NopLogger
	t      *testing.T
	done   context.Context
	fields watermill.LogFields
}

func (l *logger) Error(msg string, err error, fields watermill.LogFields) {
	if l.done.Err() == nil {
		l.t.Logf("%s: %v %v", msg, err, l.fields.Add(fields))
	}
}

func (l *logger) With(fields watermill.LogFields) watermill.LoggerAdapter {
	return &logger{t: l.t, done: l.done, fields: l.fields.Add(fields)}
}

// unmarshaler adapts a function to a subscriber.Unmarshaler.
type unmarshaler func(r *journal.Record) (*message.Message, error)

func (f unmarshaler) Unmarshal(r *journal.Record) (*message.Message, error) { return f(r) }
