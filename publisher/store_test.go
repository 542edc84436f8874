package publisher_test

import (
	"cmp"
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// patience limits the time that a test waits before it fails. It also is the time limit of journals
// and publishers whose limits are not what a test is about, so that a slow machine passes too.
const patience = 2 * time.Minute

// store is an empty journal of one test.
type store struct {
	t      testing.TB
	client *dynamodb.Client
	wire   *wire
	*journal.Journal
}

func newStore(t testing.TB, config journal.Config) *store {
	t.Helper()
	client := testdb.Client(t)
	config.Shards, config.Layout = 4, cmp.Or(config.Layout, journal.Classic)
	if config.RetryBudget == 0 {
		config.RetryBudget = patience
	}
	require.NoError(t, journal.Create(context.Background(), client, config))
	w := &wire{Client: client}
	j, err := journal.Open(context.Background(), w, config)
	require.NoError(t, err)
	w.reads = 0
	return &store{t: t, client: client, wire: w, Journal: j}
}

// eachStore runs a test on each layout.
func eachStore(t *testing.T, config journal.Config, test func(t *testing.T, s *store)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		of := config
		of.Layout = layout
		test(t, newStore(t, of))
	})
}

// eachStoreInFakeTime runs a test about time limits on each layout.
func eachStoreInFakeTime(t *testing.T, config journal.Config, test func(t *testing.T, s *store)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			of := config
			of.Layout = layout
			test(t, newStore(t, of))
		})
	})
}

func (s *store) isPacked() bool { return s.Config().Layout == journal.Packed }

// commits returns the operation that writes a commit of a few small events.
func (s *store) commits() string {
	if s.isPacked() {
		return "PutItem"
	}
	return "TransactWriteItems"
}

// another returns the same journal in another process.
func (s *store) another() *journal.Journal {
	s.t.Helper()
	j, err := journal.Open(context.Background(), s.client, journal.Config{RetryBudget: patience})
	require.NoError(s.t, err)
	return j
}

func (s *store) publisher(config publisher.Config) *publisher.Publisher {
	s.t.Helper()
	if config.Journal == nil {
		config.Journal = s.Journal
	}
	for _, limit := range []*time.Duration{&config.CommitTimeout, &config.CloseTimeout} {
		if *limit == 0 {
			*limit = patience
		}
	}
	p, err := publisher.NewPublisher(config, nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, p.Close()) })
	return p
}

// version returns the number of events of the aggregate.
func (s *store) version(id aggregate.ID) uint64 {
	s.t.Helper()
	head, err := s.another().Head(context.Background(), id)
	if err != nil {
		require.ErrorIs(s.t, err, journal.ErrNotFound)
	}
	return head.Version
}

// records reads all events of an aggregate.
func (s *store) records(id aggregate.ID) []*journal.Record {
	s.t.Helper()
	var records []*journal.Record
	for r, err := range s.another().Events(context.Background(), id, 1, s.version(id)) {
		require.NoError(s.t, err)
		records = append(records, r)
	}
	for i, r := range records {
		require.EqualValues(s.t, i+1, r.Number, "the numbers of %s must be 1..n", id)
	}
	return records
}

func (s *store) payloads(id aggregate.ID) []string {
	s.t.Helper()
	var payloads []string
	for _, r := range s.records(id) {
		payloads = append(payloads, string(r.Payload))
	}
	return payloads
}

// eventCount counts all stored events, also events beyond the head of their aggregate.
func (s *store) eventCount() int {
	s.t.Helper()
	table := "journal"
	out, err := s.client.Scan(context.Background(), &dynamodb.ScanInput{TableName: &table})
	require.NoError(s.t, err)
	return int(out.Count) - 1 // the descriptor
}

var order1 = aggregate.ID{Type: "order", Value: "1"}

func messageTo(id aggregate.ID, payload string) *message.Message {
	// All messages have the same UUID, as in Watermill's benchmark.
	msg := message.NewMessage("1", message.Payload(payload))
	msg.Metadata.Set(publisher.AggregateIDKey, id.Value)
	return msg
}

// messagesTo returns n messages with the payloads "prefix0".."prefix(n-1)".
func messagesTo(id aggregate.ID, prefix string, n int) []*message.Message {
	msgs := make([]*message.Message, n)
	for i := range msgs {
		msgs[i] = messageTo(id, prefix+strconv.Itoa(i))
	}
	return msgs
}

func numbered(prefix string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = prefix + strconv.Itoa(i)
	}
	return texts
}

func indexes(from, to int) []int {
	var is []int
	for i := from; i < to; i++ {
		is = append(is, i)
	}
	return is
}

// eventually waits until a condition is true.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond, append([]any{what}, args...)...)
}

// async publishes in a goroutine, and returns a channel for the result.
func async(p *publisher.Publisher, topic string, msgs ...*message.Message) <-chan error {
	result := make(chan error, 1)
	go func() { result <- p.Publish(topic, msgs...) }()
	return result
}
