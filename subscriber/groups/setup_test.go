package groups_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const (
	group = "group"
	topic = "account"
	// patience limits the time that a test waits before it fails. It says nothing about speed.
	patience = 2 * time.Minute
)

func account(id string) aggregate.ID { return aggregate.ID{Type: topic, Value: id} }

// collect returns the values of a sequence up to its error.
func collect[T any](sequence iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range sequence {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// store is a journal with its groups.
type store struct {
	*journal.Journal
	*groups.Groups
	*groups.Group        // the group of the tests
	clock         *clock // if set, it advances by a second with each write
}

func setup(t *testing.T, shards int) store {
	t.Helper()
	return open(t, create(t, shards), journal.Config{})
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

// eachLayoutInFakeTime is like eachLayout, in fake time. Use it for tests in which shards change
// hands.
func eachLayoutInFakeTime(t *testing.T, shards int, test func(t *testing.T, client *dynamodb.Client)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) { test(t, createIn(t, layout, shards)) })
	})
}

// eachLayout runs a test with tables of each layout.
func eachLayout(t *testing.T, shards int, test func(t *testing.T, client *dynamodb.Client)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) { test(t, createIn(t, layout, shards)) })
}

func open(t *testing.T, client journal.Client, config journal.Config) store {
	t.Helper()
	j := testjournal.Open(t, client, config)
	g := groups.New(j)
	return store{Journal: j, Groups: g, Group: g.Of(group, topic)}
}

// write appends n events to an aggregate that already has a number of events.
func (s store) write(t *testing.T, id string, after, n int) {
	t.Helper()
	commit := storage.Commit{Aggregate: account(id), Expected: uint64(after)}
	for i := range n {
		commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: fmt.Appendf(nil, "%s/%d", id, after+i+1)})
	}
	if s.clock != nil {
		s.clock.at = s.clock.at.Add(time.Second)
	}
	_, err := s.Journal.Internal().Append(context.Background(), commit)
	require.NoError(t, err)
}

// alone returns a config for the only member of a group. Its lease does not end on a slow machine.
func (s store) alone() subscriber.Config {
	config := s.quick()
	config.Timing.LeaseDuration, config.CloseTimeout = patience, patience
	return config
}

// quick returns a config with short intervals. Use it in fake time. In real time, the lease can end
// on a slow machine.
func (s store) quick() subscriber.Config {
	return subscriber.Config{
		Journal: s.Journal, ConsumerGroup: group, Timing: subscriber.Timing{
			LeaseDuration: 2 * time.Second,
			PollInterval:  5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond,
			TrailingDelay: 200 * time.Millisecond, CommitInterval: 20 * time.Millisecond, BehindAfter: 50 * time.Millisecond,
		},
		NackResendSleep: time.Millisecond, MaxNackResendSleep: time.Millisecond, CloseTimeout: time.Second,
	}
}

func mustGet(t *testing.T, g interface {
	Status(ctx context.Context) (groups.Status, error)
},
) groups.Status {
	t.Helper()
	status, err := g.Status(t.Context())
	require.NoError(t, err)
	return status
}

// waitApplied waits until the group's position on an aggregate is stored.
func (s store) waitApplied(t *testing.T, id string, number uint64) {
	t.Helper()
	require.NoError(t, s.WaitApplied(t.Context(), group, account(id), number))
}

func subscribe(t *testing.T, config subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	return sub, messages
}

func receive(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	return await.Receive(t, messages, "a message")
}

// handled holds the payloads of messages, in the order in which they were handled.
type handled struct {
	mu       sync.Mutex
	payloads map[string][]string // by aggregate
	all      int
}

// handle acks messages, except those that refuse selects.
func (h *handled) handle(messages <-chan *message.Message, refuse func(payload string) bool) {
	for msg := range messages {
		if refuse != nil && refuse(string(msg.Payload)) {
			msg.Nack()
			continue
		}
		id, _, _ := subscriber.AggregateFromContext(msg.Context())
		h.mu.Lock()
		if h.payloads == nil {
			h.payloads = map[string][]string{}
		}
		h.payloads[id.Value] = append(h.payloads[id.Value], string(msg.Payload))
		h.all++
		h.mu.Unlock()
		msg.Ack()
	}
}

// consume starts a member that handles messages until the test ends.
func (h *handled) consume(t *testing.T, config subscriber.Config, refuse func(payload string) bool) *subscriber.Subscriber {
	t.Helper()
	sub, messages := subscribe(t, config)
	var working sync.WaitGroup
	working.Add(1)
	go func() {
		defer working.Done()
		h.handle(messages, refuse)
	}()
	t.Cleanup(func() {
		require.NoError(t, sub.Close())
		working.Wait()
	})
	return sub
}

func (h *handled) of(id string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.payloads[id]...)
}

func (h *handled) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

func (h *handled) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.payloads, h.all = nil, 0
}

// expect returns the payloads of an aggregate's events from..to.
func expect(id string, from, to int) (payloads []string) {
	for n := from; n <= to; n++ {
		payloads = append(payloads, fmt.Sprintf("%s/%d", id, n))
	}
	return payloads
}

var eventually = await.True

// caughtUp waits until the stored positions of the group are at the last events.
func (s store) caughtUp(t *testing.T) {
	t.Helper()
	eventually(t, "the group has caught up", func() bool {
		lag, err := s.Lag(t.Context(), groups.LagOptions{})
		return err == nil && lag.Events == 0
	})
}

// heartbeats returns the number of heartbeats of each member.
func (s store) heartbeats(t *testing.T) map[uint64]uint64 {
	t.Helper()
	membership, err := checkpoint.New(s.Journal).ReadMembership(t.Context(), checkpoint.Key{Group: group, Topic: topic})
	require.NoError(t, err)
	heartbeats := map[uint64]uint64{}
	for number, m := range membership.Members {
		heartbeats[number] = m.Heartbeat
	}
	return heartbeats
}

// rows returns the sort keys in the checkpoint table.
func (s store) rows(t *testing.T) (keys []string) {
	t.Helper()
	table := s.Config().Tables.Checkpoint
	out, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	require.NoError(t, err)
	require.Empty(t, out.LastEvaluatedKey)
	for _, row := range out.Items {
		keys = append(keys, text(row["pkey"])+" "+text(row["skey"]))
	}
	return keys
}

// tick waits until the time of new events, in milliseconds, is later.
func tick(t *testing.T) {
	t.Helper()
	start := time.Now()
	eventually(t, "time goes by", func() bool { return time.Since(start) > 2*time.Millisecond })
}
