package suite_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience is the longest wait of a test. It limits a failing test, and is not a claim about speed.
const patience = 2 * time.Minute

// store is a database with a journal. Every Pub/Sub opens the journal separately, as the processes
// of an application would.
type store struct{ client journal.Client }

// newStore returns a store with the classic layout.
func newStore(t *testing.T) store {
	t.Helper()
	return storeIn(t, testdb.Client(t), journal.Classic)
}

// layouts are all layouts.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// inLayouts runs a test in each layout, one after the other. On DynamoDB Local, where it takes
// minutes, it runs only in the packed layout: the tests for one layout use the classic one there.
func inLayouts(t *testing.T, test func(t *testing.T, layout journal.Layout)) {
	t.Helper()
	for _, layout := range layouts {
		if testdb.IsLocal() && layout != journal.Packed {
			continue
		}
		t.Run(string(layout), func(t *testing.T) { test(t, layout) })
	}
}

func storeIn(t *testing.T, client journal.Client, layout journal.Layout) store {
	t.Helper()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 4, Layout: layout}))
	return store{client}
}

// ordered returns a Pub/Sub with default settings: one stream for each topic and Publisher.
func (s store) ordered(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	t.Helper()
	return s.pubSub(t, publisher.Config{}, subscriber.Config{ConsumerGroup: group})
}

// newGroup returns an ordered Pub/Sub with its own group. CloseTimeout is short, because the suite
// closes dozens of subscribers that have a message without an ack or nack. Each of these closes
// waits for the whole timeout.
func (s store) newGroup(t *testing.T) (message.Publisher, message.Subscriber) {
	t.Helper()
	return s.pubSub(t, publisher.Config{}, subscriber.Config{ConsumerGroup: uuid.NewString(), CloseTimeout: 100 * time.Millisecond})
}

// unordered returns a Pub/Sub in which each message is its own aggregate. Its id is drawn, since
// the suite publishes messages with the same UUID several times.
func (s store) unordered(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	t.Helper()
	return s.pubSub(t, publisher.Config{
		AggregateID: func(string, *message.Message) (string, error) { return uuid.NewString(), nil },
	}, subscriber.Config{ConsumerGroup: group})
}

func (s store) pubSub(t *testing.T, p publisher.Config, c subscriber.Config) (message.Publisher, message.Subscriber) {
	t.Helper()
	j, err := journal.Open(t.Context(), s.client, journal.Config{})
	require.NoError(t, err)
	p.Journal, c.Journal = j, j
	// The suite nacks one message a hundred times, and fails when a redelivery takes longer than 15
	// seconds. The default pauses grow to 30 seconds.
	c.NackResendSleep, c.MaxNackResendSleep = 10*time.Millisecond, 10*time.Millisecond
	pub, err := publisher.NewPublisher(p, testLogger(t))
	require.NoError(t, err)
	sub, err := subscriber.NewSubscriber(c, testLogger(t))
	require.NoError(t, err)
	t.Cleanup(func() { // for subscribers that tests leave open
		assert.NoError(t, pub.Close())
		assert.NoError(t, sub.Close())
	})
	return pub, sub
}

// testLogger logs errors with the test that they belong to.
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

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, what)
}
