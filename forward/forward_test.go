package forward_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

const patience = 2 * time.Minute

type (
	order  struct{ Placed int }
	placed struct{ Item string }
	// moved stands for two events, see the upcaster.
	moved   struct{ From, To string }
	left    struct{ Place string }
	arrived struct{ Place string }
	// checked has no message.
	checked struct{}

	// OrderPlaced and the others are the messages.
	OrderPlaced struct{ Order, Item string }
	OrderMoved  struct{ Order, Place string }
)

func (placed) EventType() string      { return "order.placed.v1" }
func (left) EventType() string        { return "order.left.v1" }
func (arrived) EventType() string     { return "order.arrived.v1" }
func (checked) EventType() string     { return "order.checked.v1" }
func (placed) Apply(o *order)         { o.Placed++ }
func (left) Apply(*order)             {}
func (arrived) Apply(*order)          {}
func (checked) Apply(*order)          {}
func (OrderPlaced) EventType() string { return "OrderPlaced" }
func (OrderMoved) EventType() string  { return "OrderMoved" }

var orders = aggregate.Define[order]("order", placed{}, left{}, arrived{}, checked{}).WithUpcasters(
	aggregate.Split("order.moved.v1", func(m moved) ([]aggregate.Event[order], error) {
		return []aggregate.Event[order]{left{m.From}, arrived{m.To}}, nil
	}),
)

// mappings turn each placed event into two messages, on two topics, and each place into one.
var mappings = []forward.Mapping{
	forward.On("orders", func(_ context.Context, e placed, r *journal.Record) ([]OrderPlaced, error) {
		return []OrderPlaced{{r.Aggregate.Value, e.Item}, {r.Aggregate.Value, e.Item + " again"}}, nil
	}).WithVersion(2),
	forward.On("items", func(_ context.Context, e placed, r *journal.Record) ([]OrderPlaced, error) {
		return []OrderPlaced{{r.Aggregate.Value, e.Item}}, nil
	}),
	forward.On("orders", func(_ context.Context, e left, r *journal.Record) ([]OrderMoved, error) {
		return []OrderMoved{{r.Aggregate.Value, e.Place}}, nil
	}),
	forward.On("orders", func(_ context.Context, e arrived, r *journal.Record) ([]OrderMoved, error) {
		return []OrderMoved{{r.Aggregate.Value, e.Place}}, nil
	}),
}

// broker records what is published. It fails as often as random says: before it has taken a
// message, or after that, as if the reply were lost.
type broker struct {
	mu     sync.Mutex
	random *rand.Rand
	faults float64
	taken  []taken
	closed bool
}

type taken struct {
	topic string
	*message.Message
}

var errBroker = errors.New("the broker is down")

func (b *broker) Publish(topic string, messages ...*message.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		if b.random.Float64() < b.faults {
			return errBroker
		}
		b.taken = append(b.taken, taken{topic, m.Copy()})
		if b.random.Float64() < b.faults {
			return errBroker
		}
	}
	return nil
}

func (b *broker) Close() error {
	b.closed = true
	return nil
}

func (b *broker) all() []taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]taken(nil), b.taken...)
}

// consume forwards the events of a group until stop is called.
func consume(t *testing.T, j *journal.Journal, f *forward.Forwarder) (stop func()) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "out", NoReplay: true, NackResendSleep: time.Millisecond, MaxNackResendSleep: 5 * time.Millisecond,
		Timing: subscriber.Timing{PollInterval: 5 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond, LeaseDuration: 2 * time.Second},
	}, nil)
	require.NoError(t, err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	require.NoError(t, err)
	router.AddConsumerHandler("out", "order", sub, f.Handle)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.WithoutCancel(t.Context())) }()
	<-router.Running()
	return sync.OnceFunc(func() {
		require.NoError(t, router.Close())
		require.NoError(t, <-ended)
	})
}

// TestNothingIsLostAndTheOrderIsKept forwards events while the broker fails, before or after it has
// taken a message, and the consumer restarts.
func TestNothingIsLostAndTheOrderIsKept(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(8) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 40))
			j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Packed, Shards: 2})
			repo := testjournal.Repository(t, j, orders, repository.Config{})
			b := &broker{random: rand.New(rand.NewPCG(seed, 41)), faults: 0.15}
			f, err := forward.New(forward.Config{Publisher: b, Definitions: []aggregate.AnyDefinition{orders}}, mappings...)
			require.NoError(t, err)
			stop := consume(t, j, f)
			defer func() { stop() }()

			want := map[string][]string{} // texts of the messages by topic and order
			expect := func(topic, id, text string) { want[topic+"/"+id] = append(want[topic+"/"+id], text) }
			versions := map[string]uint64{}
			for i := range 150 {
				id, text := strconv.Itoa(random.IntN(6)), fmt.Sprint("item ", i)
				versions[id]++
				event := aggregate.Event[order](checked{})
				switch random.IntN(5) {
				case 0:
					event = placed{text}
					expect("orders", id, text)
					expect("orders", id, text+" again")
					expect("items", id, text)
				case 1:
					event = left{text}
					expect("orders", id, text)
				case 2:
					event = arrived{text}
					expect("orders", id, text)
				case 3: // an event of an earlier type
					expect("orders", id, text)
					expect("orders", id, "to "+text)
					payload, err := json.Marshal(moved{text, "to " + text})
					require.NoError(t, err)
					testjournal.Append(t, j, storage.Commit{
						Aggregate: aggregate.ID{Type: "order", Value: id}, Expected: versions[id] - 1,
						Events: []storage.Event{{Type: "order.moved.v1", Payload: payload}},
					})
					continue
				}
				testjournal.Execute(t, repo, id, func(order) (aggregate.Events[order], error) { return aggregate.Events[order]{event}, nil })
				if random.IntN(40) == 0 {
					stop()
					stop = consume(t, j, f)
				}
			}
			total := 0
			for _, texts := range want {
				total += len(texts)
			}
			require.Eventually(t, func() bool { return len(firsts(t, b.all())) == total }, patience, 5*time.Millisecond)
			stop()
			got := map[string][]string{}
			for _, m := range firsts(t, b.all()) {
				var content struct{ Order, Item, Place string }
				require.NoError(t, json.Unmarshal(m.Payload, &content))
				key := m.topic + "/" + m.Metadata.Get(forward.KeyKey)
				require.Equal(t, content.Order, m.Metadata.Get(forward.KeyKey))
				got[key] = append(got[key], content.Item+content.Place)
			}
			require.Equal(t, want, got)
			assert.False(t, b.closed, "the caller closes the publisher")
		})
	}
}

// firsts returns the first message with each UUID. All with the same UUID must be equal.
func firsts(t *testing.T, all []taken) []taken {
	t.Helper()
	var first []taken
	seen := map[string]taken{}
	for _, m := range all {
		if before, again := seen[m.UUID]; again {
			require.Equal(t, before.topic, m.topic)
			require.True(t, before.Equals(m.Message), "two messages with the same UUID: %v and %v", before.Metadata, m.Metadata)
			continue
		}
		seen[m.UUID] = m
		first = append(first, m)
	}
	return first
}

// delivered returns the message of an event as a subscriber delivers it.
func deliver(t *testing.T, events ...aggregate.Event[order]) []*message.Message {
	t.Helper()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Packed, Shards: 1})
	repo := testjournal.Repository(t, j, orders, repository.Config{})
	ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{
		"tenant": "a", "baggage": "user=anna", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "x=1",
	})
	_, err := repo.Execute(ctx, "7", func(order) (aggregate.Events[order], error) { return events, nil })
	require.NoError(t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "out"}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), "order")
	require.NoError(t, err)
	var all []*message.Message
	for range events {
		msg := <-messages
		all = append(all, msg)
		msg.Ack()
	}
	return all
}

func TestAMessageSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	b := &broker{random: rand.New(rand.NewPCG(1, 1))}
	f, err := forward.New(forward.Config{Publisher: b}, mappings...)
	require.NoError(t, err)
	in := deliver(t, checked{}, placed{"tea"})
	for _, msg := range in {
		require.NoError(t, f.Handle(msg))
	}
	out := b.all()
	require.Len(t, out, 3)
	first := out[0]
	assert.JSONEq(t, `{"Order":"7","Item":"tea"}`, string(first.Payload))
	assert.Equal(t, message.Metadata{
		"name": "OrderPlaced", "schema_version": "2", "key": "7", "sequence_number": "2", "occurred_at": in[1].Metadata.Get("occurred_at"),
		"correlation_id": in[1].UUID, "causation_id": in[1].UUID,
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "x=1",
	}, first.Metadata, "nothing internal, and no more than SQS accepts")
	assert.Equal(t, "orders", out[1].topic)
	assert.Equal(t, "items", out[2].topic)
	key, err := forward.Key("", first.Message)
	require.NoError(t, err)
	assert.Equal(t, "7", key)
	assert.Equal(t, forward.Stats{Messages: 3, Ignored: 1}, f.Stats())
	assert.Equal(t, []string{"order.arrived.v1", "order.left.v1", "order.placed.v1"}, f.EventTypes())
	assert.Equal(t, 2, mappings[0].Describe().Version)
}

// TestUUIDsDifferWhereMessagesDo publishes the same event to several topics, and events that have
// the same id.
func TestUUIDsDifferWhereMessagesDo(t *testing.T) {
	t.Parallel()
	b := &broker{random: rand.New(rand.NewPCG(1, 1))}
	f, err := forward.New(forward.Config{Publisher: b}, mappings...)
	require.NoError(t, err)
	for _, msg := range deliver(t, placed{"tea"}, placed{"tea"}, left{"x"}) {
		record, _ := subscriber.RecordFromContext(msg.Context())
		record.EventID = "same"
		require.NoError(t, f.Handle(msg))
		require.NoError(t, f.Handle(msg), "again")
	}
	assert.Len(t, b.all(), 14)
	assert.Len(t, firsts(t, b.all()), 7)
}

func TestAMessageCanBePrepared(t *testing.T) {
	t.Parallel()
	b := &broker{random: rand.New(rand.NewPCG(1, 1))}
	f, err := forward.New(forward.Config{
		Publisher: b, Key: func(r *journal.Record) string { return "tenant-" + r.Metadata["tenant"] },
		Prepare: func(msg *message.Message, r *journal.Record) error {
			msg.Metadata.Set("tenant", r.Metadata["tenant"])
			return nil
		},
	}, mappings...)
	require.NoError(t, err)
	require.NoError(t, f.Handle(deliver(t, left{"x"})[0]))
	assert.Equal(t, "tenant-a", b.all()[0].Metadata.Get(forward.KeyKey))
	assert.Equal(t, "a", b.all()[0].Metadata.Get("tenant"))
}

// silent returns neither a message nor an error.
type silent struct{ cqrs.JSONMarshaler }

func (silent) Marshal(any) (*message.Message, error) { return nil, nil } //nolint:nilnil // a mistake

func TestErrorsAreReturned(t *testing.T) {
	t.Parallel()
	msg := deliver(t, placed{"tea"})[0]
	errMapping := errors.New("cannot map")
	for name, c := range map[string]struct {
		config  forward.Config
		mapping forward.Mapping
		want    error
	}{
		"mapping": {forward.Config{}, forward.On("orders", func(context.Context, placed, *journal.Record) ([]OrderPlaced, error) { return nil, errMapping }), errMapping},
		"prepare": {forward.Config{Prepare: func(*message.Message, *journal.Record) error { return errMapping }}, mappings[1], errMapping},
		"broker":  {forward.Config{Publisher: &broker{random: rand.New(rand.NewPCG(1, 1)), faults: 1}}, mappings[1], errBroker},
	} {
		if c.config.Publisher == nil {
			c.config.Publisher = &broker{random: rand.New(rand.NewPCG(1, 1))}
		}
		f, err := forward.New(c.config, c.mapping)
		require.NoError(t, err, name)
		require.ErrorIs(t, f.Handle(msg), c.want, name)
		assert.Equal(t, uint64(1), f.Stats().Failed, name)
	}
	f, err := forward.New(forward.Config{Publisher: &broker{}}, mappings...)
	require.NoError(t, err)
	require.ErrorIs(t, f.Handle(message.NewMessage("1", nil)), forward.ErrNoRecord)
	require.ErrorIs(t, f.Handle(nil), forward.ErrNoRecord)
	f, err = forward.New(forward.Config{Publisher: &broker{}, Marshaler: silent{}}, mappings...)
	require.NoError(t, err)
	require.ErrorContains(t, f.Handle(msg), "Config.Marshaler has returned no message")
	unencodable := forward.On("orders", func(context.Context, placed, *journal.Record) ([]func(), error) { return []func(){func() {}}, nil })
	f, err = forward.New(forward.Config{Publisher: &broker{}}, unencodable)
	require.NoError(t, err)
	require.ErrorContains(t, f.Handle(msg), "message 1 of event 1 of order-7 (order.placed.v1): marshal func()")
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	b := &broker{}
	var none func(context.Context, placed, *journal.Record) ([]OrderPlaced, error)
	for want, c := range map[string]struct {
		config   forward.Config
		mappings []forward.Mapping
	}{
		"Config.Publisher":   {forward.Config{}, mappings},
		"mappings":           {forward.Config{Publisher: b}, nil},
		"Config.Definitions": {forward.Config{Publisher: b, Definitions: []aggregate.AnyDefinition{nil}}, mappings},
		"mapping 1":          {forward.Config{Publisher: b}, []forward.Mapping{{}}},
		"mapping 2":          {forward.Config{Publisher: b}, []forward.Mapping{mappings[0], forward.On("orders", none)}},
		"mapping 3":          {forward.Config{Publisher: b}, []forward.Mapping{mappings[0], mappings[1], mappings[0].WithVersion(0)}},
	} {
		_, err := forward.New(c.config, c.mappings...)
		var refused *forward.ConfigError
		require.ErrorAs(t, err, &refused, want)
		assert.Equal(t, want, refused.Field)
	}
}
