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

// patience is how long a test waits for what must happen. It bounds a failing test and is no claim
// about speed.
const patience = 2 * time.Minute

// store is a database with a journal in it. Every Pub/Sub opens the journal for itself, as the
// processes of an application would.
type store struct{ client journal.Client }

// newStore has the classic layout.
func newStore(t *testing.T) store {
	t.Helper()
	return storeIn(t, testdb.Client(t), journal.Classic)
}

// layouts are all layouts.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// inLayouts runs a test in each layout, one after the other. On DynamoDB Local, where it takes
// minutes, it runs in the packed one: the tests for one layout run in the classic one there.
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

// ordered has default settings: one stream for each topic and Publisher.
func (s store) ordered(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	t.Helper()
	return s.pubSub(t, publisher.Config{}, subscriber.Config{ConsumerGroup: group})
}

// newGroup is ordered with a group of its own. The suite closes tens of such subscribers one after
// the other, each with a message that nobody answers, and waiting for an answer would take up most
// of the time.
func (s store) newGroup(t *testing.T) (message.Publisher, message.Subscriber) {
	t.Helper()
	return s.pubSub(t, publisher.Config{}, subscriber.Config{ConsumerGroup: uuid.NewString(), CloseTimeout: 100 * time.Millisecond})
}

// unordered makes each message an aggregate of its own. Its id is drawn rather than taken from the
// message, since the suite publishes messages of one UUID several times.
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
	// The suite nacks one message a hundred times, and gives up when a message takes longer than 15
	// seconds to come again. By default pauses grow to 30.
	c.NackResendSleep, c.MaxNackResendSleep = 100*time.Millisecond, 100*time.Millisecond
	pub, err := publisher.NewPublisher(p, testLogger(t))
	require.NoError(t, err)
	sub, err := subscriber.NewSubscriber(c, testLogger(t))
	require.NoError(t, err)
	t.Cleanup(func() { // what a test leaves open, as some of the suite do
		assert.NoError(t, pub.Close())
		assert.NoError(t, sub.Close())
	})
	return pub, sub
}

// testLogger shows errors with the test they belong to.
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
