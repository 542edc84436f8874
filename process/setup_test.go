package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// A saga reserves credit for an order and approves the order. It gives up if no reply arrives in
// time.
type Saga struct {
	Total    int
	Reserved bool
	Outcome  string
}

type (
	Begun    struct{ Total int }
	Reserved struct{}
	Ended    struct{ Outcome string }
)

func (Begun) EventType() string    { return "saga.begun" }
func (Reserved) EventType() string { return "saga.reserved" }
func (Ended) EventType() string    { return "saga.ended" }

func (e Begun) Apply(s *Saga)  { s.Total = e.Total }
func (Reserved) Apply(s *Saga) { s.Reserved = true }
func (e Ended) Apply(s *Saga)  { s.Outcome = e.Outcome }

// These are the events that it reacts to.
type (
	OrderPlaced    struct{ Total int }
	CreditReserved struct{ Order string }
	OrderTouched   struct{}
	OrderBroken    struct{ Fault string }
)

func (OrderPlaced) EventType() string    { return "order.placed" }
func (CreditReserved) EventType() string { return "credit.reserved" }
func (OrderTouched) EventType() string   { return "order.touched" }
func (OrderBroken) EventType() string    { return "order.broken" }

// These are the commands that it sends.
type (
	ReserveCredit struct {
		Order string
		Total int
	}
	ApproveOrder struct{ Order string }
	RejectOrder  struct{ Order, Reason string }
)

type step = process.Step[Saga]

const deadline = 10 * time.Minute

func byID(_ OrderPlaced, in process.Input) string { return in.Source.Value }

var sagas = aggregate.Define[Saga]("saga", Begun{}, Reserved{}, Ended{})

var definition = process.Define(sagas,
	process.On(byID, func(_ Saga, e OrderPlaced, in process.Input) (step, error) {
		return process.Record(Begun(e)).
			Send(ReserveCredit{Order: in.Source.Value, Total: e.Total}).
			SetTimeout("credit", deadline), nil
	}).Starts(),
	process.On(func(e CreditReserved, _ process.Input) string { return e.Order }, func(_ Saga, e CreditReserved, _ process.Input) (step, error) {
		return process.Record(Reserved{}, Ended{"approved"}).Send(ApproveOrder(e)).CancelTimeout("credit"), nil
	}),
	process.On(func(_ OrderTouched, in process.Input) string { return in.Source.Value }, func(Saga, OrderTouched, process.Input) (step, error) {
		return begun.SetTimeout("credit", deadline), nil
	}),
	process.On(func(_ OrderBroken, in process.Input) string { return in.Source.Value }, func(_ Saga, e OrderBroken, _ process.Input) (step, error) {
		return broken[e.Fault]()
	}).Starts(),
	process.OnTimeout("credit", func(_ Saga, in process.Input) (step, error) {
		return process.Record(Ended{"too late"}).Send(RejectOrder{Order: in.Process, Reason: "no credit in time"}), nil
	}),
).EndsWhen(func(s Saga) bool { return s.Outcome != "" })

var errNotNow = errors.New("not now")

// broken are reactions with faults.
var broken = map[string]func() (step, error){
	"fails":           func() (step, error) { return step{}, errNotNow },
	"unrecorded":      func() (step, error) { return step{}.Send(ApproveOrder{}), nil },
	"unknown timeout": func() (step, error) { return begun.SetTimeout("lunch", 1), nil },
	"no duration":     func() (step, error) { return begun.SetTimeout("credit", 0), nil },
	"past duration":   func() (step, error) { return begun.SetTimeout("credit", -1), nil },
	"no time":         func() (step, error) { return begun.SetTimeoutAt("credit", time.Time{}), nil },
	"set twice":       func() (step, error) { return begun.SetTimeout("credit", 1).CancelTimeout("credit"), nil },
	"nil command":     func() (step, error) { return begun.Send(nil), nil },
	"too large":       func() (step, error) { return begun.Send(make([]byte, 400<<10)), nil },
	"nothing":         func() (step, error) { return step{}, nil },
}

var begun = process.Record(Begun{1})

type world struct {
	t      *testing.T
	client *dynamodb.Client
	j      *journal.Journal

	mu      sync.Mutex
	now     time.Time
	sent    []sent
	offline bool
}

type sent struct {
	topic, uuid, payload string
	metadata             message.Metadata
}

func setup(t *testing.T) *world {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 2}))
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	j := testjournal.Open(t, client, journal.Config{})
	return &world{t: t, client: client, j: j, now: time.UnixMilli(1_700_000_000_000)}
}

func (w *world) config() process.Config {
	return process.Config{
		Publisher: w, GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return p.CommandName, nil },
		Marshaler: cqrs.JSONMarshaler{GenerateName: cqrs.StructName},
		Now:       func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
		Logger:    watermill.NopLogger{},
	}
}

func (w *world) manager(client process.Client, config process.Config) *process.Manager[Saga] {
	w.t.Helper()
	m, err := process.New(w.j, client, definition, config)
	require.NoError(w.t, err)
	return m
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

var errOffline = errors.New("the broker is offline")

// Publish makes the world the broker of commands.
func (w *world) Publish(topic string, messages ...*message.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.offline {
		return errOffline
	}
	for _, msg := range messages {
		w.sent = append(w.sent, sent{topic, msg.UUID, string(msg.Payload), msg.Metadata})
	}
	return nil
}

func (w *world) Close() error { return nil }

func (w *world) setOffline(offline bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offline = offline
}

// topics returns the topics of the sent messages, and clears them.
func (w *world) topics() (topics []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		topics = append(topics, s.topic)
	}
	w.sent = nil
	return topics
}

func (w *world) saga(m *process.Manager[Saga], id string) (Saga, uint64) {
	w.t.Helper()
	a, err := m.Repository().Load(w.t.Context(), id)
	require.NoError(w.t, err)
	return a.State, a.Version
}

func (w *world) fire(m *process.Manager[Saga]) int {
	w.t.Helper()
	n, err := m.Fire(w.t.Context())
	require.NoError(w.t, err)
	return n
}

// event returns a message as any subscriber would deliver it.
func event(ctx context.Context, uuid, order string, e interface{ EventType() string }) *message.Message {
	payload, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	msg := message.NewMessageWithContext(ctx, uuid, payload)
	msg.Metadata = message.Metadata{"name": e.EventType(), "aggregate_type": "order", "aggregate_id": order, "sequence_number": "7", "correlation_id": "request"}
	return msg
}

// flaky fails some requests before they are sent, and loses the replies of others.
type flaky struct {
	*dynamodb.Client
	mu     sync.Mutex
	random *rand.Rand
	off    bool
}

var errCut = errors.New("the connection was cut")

func (f *flaky) draw() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return false, false
	}
	u := f.random.Float64()
	return u < 0.1, u > 0.9
}

func try[In, Out any](ctx context.Context, f *flaky, in *In, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)) (*Out, error) {
	before, after := f.draw()
	if before {
		return nil, errCut
	}
	out, err := call(ctx, in)
	if err == nil && after {
		return nil, errCut
	}
	return out, err
}

func (f *flaky) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return try(ctx, f, in, f.Client.GetItem)
}

func (f *flaky) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return try(ctx, f, in, f.Client.UpdateItem)
}

func (f *flaky) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return try(ctx, f, in, f.Client.DeleteItem)
}

func (f *flaky) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return try(ctx, f, in, f.Client.Query)
}

func (f *flaky) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return try(ctx, f, in, f.Client.TransactWriteItems)
}
