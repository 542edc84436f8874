package wakeup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/wakeup"
)

func order(id string) aggregate.ID { return aggregate.ID{Type: "order", Value: id} }

// commit appends an event after a number of others.
func commit(t *testing.T, j *journal.Journal, id string, after uint64) {
	t.Helper()
	testjournal.Append(t, j, storage.Commit{
		Aggregate: order(id), Expected: after, Events: []storage.Event{{Type: "placed", Payload: fmt.Appendf(nil, "%s/%d", id, after+1)}},
	})
}

// published records what a sender publishes.
type published struct {
	mu       sync.Mutex
	messages []versions
	largest  int
	err      error
	release  chan struct{} // Publish waits for it, if it is not nil
}

// versions is the content of a wake-up.
type versions map[string]map[string]uint64

func (p *published) Publish(topic string, messages ...*message.Message) error {
	if p.release != nil {
		<-p.release
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	for _, msg := range messages {
		var w struct{ Versions versions }
		if err := json.Unmarshal(msg.Payload, &w); err != nil || topic != wakeup.DefaultTopic {
			return errors.Join(err, errors.New(topic))
		}
		p.messages, p.largest = append(p.messages, w.Versions), max(p.largest, len(msg.Payload))
	}
	return nil
}

func (p *published) Close() error { return nil }

func (p *published) all() []versions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages
}

// highest returns the highest version of each aggregate.
func (p *published) highest() map[string]uint64 {
	found := map[string]uint64{}
	for _, m := range p.all() {
		for id, version := range m["order"] {
			found[id] = max(found[id], version)
		}
	}
	return found
}

func newSender(t *testing.T, c wakeup.Config) *wakeup.Sender {
	t.Helper()
	s, err := wakeup.NewSender(c, nil)
	require.NoError(t, err)
	return s
}

func newJournal(t *testing.T) (*dynamotest.DB, *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	return db, testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 2})
}

// run runs a receiver until the test ends.
func run(t *testing.T, c wakeup.Config) *wakeup.Receiver {
	t.Helper()
	r, err := wakeup.NewReceiver(c, nil)
	require.NoError(t, err)
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(ended); r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

func TestACommitWakesAnotherProcess(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
		defer func() { require.NoError(t, broker.Close()) }()
		db, ours := newJournal(t)
		theirs := testjournal.Open(t, db.Client(), journal.Config{})
		receiver := run(t, wakeup.Config{Journal: theirs, Subscriber: broker})
		sub, err := subscriber.NewSubscriber(subscriber.Config{
			Journal: theirs, ConsumerGroup: "mails", Timing: subscriber.Timing{PollInterval: time.Hour},
		}, nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, sub.Close()) }()
		messages, err := sub.Subscribe(t.Context(), "order")
		require.NoError(t, err)
		await.True(t, "it has the shards", func() bool { return len(sub.Shards()) == 2 })
		time.Sleep(time.Minute)

		sender := newSender(t, wakeup.Config{Journal: ours, Publisher: broker})
		begun := time.Now()
		for n := range uint64(10) {
			commit(t, ours, "1", n)
			msg := await.Receive(t, messages, "a message")
			assert.Equal(t, fmt.Sprintf("1/%d", n+1), string(msg.Payload))
			msg.Ack()
		}
		assert.Less(t, time.Since(begun), time.Second, "no poll was necessary")
		require.NoError(t, sender.Close())
		assert.EqualValues(t, 10, sender.Stats().Commits)
		assert.EqualValues(t, 10, receiver.Stats().Aggregates)
	})
}

func TestTheFirstCommitIsSentAtOnceAndOthersAreCollected(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := newJournal(t)
		broker := &published{}
		sender := newSender(t, wakeup.Config{Journal: j, Publisher: broker, Interval: time.Minute})
		commit(t, j, "first", 0)
		await.True(t, "it is sent", func() bool { return len(broker.all()) == 1 })
		for n := range uint64(20) {
			commit(t, j, "a", n)
			commit(t, j, "b", n)
		}
		assert.Len(t, broker.all(), 1)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []versions{{"order": {"first": 1}}, {"order": {"a": 20, "b": 20}}}, broker.all())
		require.NoError(t, sender.Close())
		assert.Equal(t, wakeup.SenderStats{Commits: 41, Messages: 2}, sender.Stats())
		commit(t, j, "a", 20)
		assert.EqualValues(t, 41, sender.Stats().Commits, "it is closed")
		require.NoError(t, sender.Close())
	})
}

func TestAMessageIsLimited(t *testing.T) {
	t.Parallel()
	_, j := newJournal(t)
	broker := &published{release: make(chan struct{})}
	sender := newSender(t, wakeup.Config{Journal: j, Publisher: broker})
	long := strings.Repeat("\"", 900) // JSON doubles it
	for n := range 2_000 {
		j.Internal().Notify(order(fmt.Sprint(n)), 1)
	}
	for n := range 200 {
		j.Internal().Notify(order(long+fmt.Sprint(n)), 1)
	}
	close(broker.release)
	require.NoError(t, sender.Flush(t.Context()))
	assert.Len(t, broker.highest(), 2_200)
	assert.Less(t, broker.largest, 256<<10)
	assert.Less(t, len(broker.all()), 20)
	require.NoError(t, sender.Close())
}

func TestABrokerThatHangsDelaysNoCommit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := newJournal(t)
		broker := &published{release: make(chan struct{})}
		sender := newSender(t, wakeup.Config{Journal: j, Publisher: broker})
		begun := time.Now()
		commit(t, j, "a", 0)
		commit(t, j, "b", 0)
		for n := range 20_000 {
			j.Internal().Notify(order(fmt.Sprint(n)), 1)
		}
		assert.Zero(t, time.Since(begun))
		assert.EqualValues(t, 10_002, sender.Stats().Dropped)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, sender.Flush(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, sender.Close(), wakeup.ErrCloseTimeout)
		close(broker.release)
		require.NoError(t, sender.Flush(t.Context()))
		require.NoError(t, sender.Close())
		assert.Len(t, broker.highest(), 10_000)
	})
}

func TestABrokerThatFailsIsTriedOnceASecond(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := newJournal(t)
		broker := &published{err: errors.New("no connection")}
		sender := newSender(t, wakeup.Config{Journal: j, Publisher: broker})
		for n := range 1_000 {
			j.Internal().Notify(order(fmt.Sprint(n)), 1)
			time.Sleep(10 * time.Millisecond)
		}
		assert.InDelta(t, 10, sender.Stats().Failures, 1)
		broker.mu.Lock()
		broker.err = nil
		broker.mu.Unlock()
		time.Sleep(2 * time.Second)
		commit(t, j, "a", 0)
		require.NoError(t, sender.Close())
		assert.EqualValues(t, 1, broker.highest()["a"])
	})
}

func TestFlushEndsAlthoughPublishFailsOrPanics(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]message.Publisher{"fails": &published{err: errors.New("no connection")}, "panics": panics{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				_, j := newJournal(t)
				sender := newSender(t, wakeup.Config{Journal: j, Publisher: broker})
				for n := range uint64(3) {
					commit(t, j, "a", n)
					begun := time.Now()
					require.NoError(t, sender.Flush(t.Context()))
					assert.Less(t, time.Since(begun), 2*time.Second)
				}
				require.NoError(t, sender.Close())
				assert.Equal(t, wakeup.SenderStats{Commits: 3, Failures: 3, Dropped: 3}, sender.Stats())
			})
		})
	}
}

type panics struct{}

func (panics) Publish(string, ...*message.Message) error { panic("no connection") }
func (panics) Close() error                              { return nil }

// slow is a publisher that takes 50 ms.
type slow struct{ *published }

func (s slow) Publish(topic string, messages ...*message.Message) error {
	time.Sleep(50 * time.Millisecond)
	return s.published.Publish(topic, messages...)
}

func TestFlushEndsUnderLoad(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := newJournal(t)
		sender := newSender(t, wakeup.Config{Journal: j, Publisher: slow{&published{}}, Interval: time.Second})
		var writing sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		writing.Add(1)
		go func() {
			defer writing.Done()
			for n := uint64(1); ctx.Err() == nil; n++ {
				j.Internal().Notify(order("a"), n)
				time.Sleep(20 * time.Millisecond)
			}
		}()
		time.Sleep(10 * time.Second)
		assert.InDelta(t, 10, sender.Stats().Messages, 2, "the interval holds")
		begun := time.Now()
		require.NoError(t, sender.Flush(t.Context()))
		assert.Less(t, time.Since(begun), time.Second)
		stop()
		writing.Wait()
		require.NoError(t, sender.Close())
	})
}

func TestTheReceiverIgnoresWhatIsNoWakeUp(t *testing.T) {
	t.Parallel()
	broker := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true, Persistent: true}, nil)
	defer func() { require.NoError(t, broker.Close()) }()
	_, j := newJournal(t)
	var mu sync.Mutex
	hints := map[aggregate.ID]uint64{}
	defer j.Internal().WatchHints("order", func(id aggregate.ID, version uint64) {
		mu.Lock()
		defer mu.Unlock()
		hints[id] = version
	})()
	receiver := run(t, wakeup.Config{Journal: j, Subscriber: broker})
	for _, payload := range []string{
		``, `null`, `[]`, `"order"`, `{"journal":"journal","versions":{"order":{"1":-1}}}`, `{"journal":"journal","versions":{"order":[1]}}`,
		`{"journal":"staging-journal","versions":{"order":{"2":1}}}`,
		`{"journal":"journal","versions":{"order":{"":1,"` + strings.Repeat("x", 2000) + `":1,"3":7},"":{"4":1},"or\u0000der":{"5":1}}}`,
		`{"journal":"journal","versions":{"order":{"` + strings.Repeat("6", 1<<20) + `":1}}}`,
		`{"journal":"journal"}`, `{"journal":"journal","versions":{"order":{"8":18446744073709551615}},"more":{}}`,
	} {
		require.NoError(t, broker.Publish(wakeup.DefaultTopic, message.NewMessage(watermill.NewUUID(), []byte(payload))))
	}
	await.True(t, "all messages have arrived", func() bool { // it may subscribe late
		mu.Lock()
		defer mu.Unlock()
		return len(hints) == 2 && receiver.Stats() == wakeup.ReceiverStats{Messages: 11, Aggregates: 2, Ignored: 1, Invalid: 12}
	})
	assert.Equal(t, map[aggregate.ID]uint64{order("3"): 7, order("8"): 1<<64 - 1}, hints)
}

// flaky is a subscriber that fails, and then ends after each message.
type flaky struct {
	mu       sync.Mutex
	fails    int
	messages []chan *message.Message
}

func (f *flaky) Subscribe(context.Context, string) (<-chan *message.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails--; f.fails >= 0 {
		return nil, errors.New("no connection")
	}
	f.messages = append(f.messages, make(chan *message.Message))
	return f.messages[len(f.messages)-1], nil
}

func (f *flaky) Close() error { return nil }

func (f *flaky) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.messages[len(f.messages)-1])
}

func TestPollingIsRareOnlyWhileTheReceiverIsSubscribed(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := newJournal(t)
		broker := &flaky{fails: 3}
		r, err := wakeup.NewReceiver(wakeup.Config{Journal: j, Subscriber: broker, PollRarely: true}, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		rare := func() time.Duration { return j.Internal().RarePoll() }
		time.Sleep(time.Second)
		assert.Zero(t, rare())
		time.Sleep(time.Minute)
		assert.Equal(t, 10*time.Second, rare())
		broker.end()
		time.Sleep(100 * time.Millisecond)
		assert.Zero(t, rare())
		time.Sleep(time.Minute)
		assert.Equal(t, 10*time.Second, rare())
		cancel()
		broker.end()
		<-ended
		assert.Zero(t, rare())
	})
}

func TestTheReceiverEndsAlthoughItsSubscriberDoesNot(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := newJournal(t)
		r, err := wakeup.NewReceiver(wakeup.Config{Journal: j, Subscriber: make(relay), PollRarely: true}, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.Run(ctx)
		assert.Zero(t, j.Internal().RarePoll())
	})
}

func TestASettingThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	_, j := newJournal(t)
	_, err := wakeup.NewReceiver(wakeup.Config{Journal: j, Subscriber: make(relay), MaxPollInterval: time.Minute}, nil)
	require.ErrorAs(t, err, new(*wakeup.ConfigError), "the loss of wake-ups could not be noticed")
	for field, c := range map[string]wakeup.Config{
		"Journal": {}, "Interval": {Journal: j, Interval: -1}, "MaxPollInterval": {Journal: j, MaxPollInterval: -1},
		"Publisher": {Journal: j}, "Subscriber": {Journal: j, Publisher: &published{}},
	} {
		var refused *wakeup.ConfigError
		_, err := wakeup.NewSender(c, nil)
		if field == "Subscriber" {
			_, err = wakeup.NewReceiver(c, nil)
		}
		require.ErrorAs(t, err, &refused, field)
		assert.Equal(t, field, refused.Field)
	}
}

// relay is a subscriber that passes on what a test sends.
type relay chan *message.Message

func (r relay) Subscribe(context.Context, string) (<-chan *message.Message, error) { return r, nil }
func (r relay) Close() error                                                       { return nil }

func FuzzReceiver(f *testing.F) {
	f.Add([]byte(`{"journal":"journal","versions":{"order":{"1":2}}}`))
	f.Add([]byte(`{"journal":"journal","versions":{"order":{"":0},"a\tb":{"1":1}}}`))
	f.Add([]byte(`{"journal":"journal","versions":{"order":null}}`))
	j := testjournal.New(f, dynamotest.New(f).Client(), journal.Config{Layout: journal.Classic, Shards: 1})
	f.Cleanup(j.Internal().WatchHints("", func(id aggregate.ID, _ uint64) { assert.NoError(f, id.Validate()) }))
	broker := make(relay)
	r, err := wakeup.NewReceiver(wakeup.Config{Journal: j, Subscriber: broker}, nil)
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	go r.Run(ctx)
	f.Cleanup(func() { cancel(); close(broker) })
	f.Fuzz(func(_ *testing.T, payload []byte) {
		msg := message.NewMessage("", payload)
		broker <- msg
		<-msg.Acked()
	})
}
