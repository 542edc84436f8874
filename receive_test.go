package millrace_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Paid is a message of another system.
type Paid struct{ Order, Item string }

func (Paid) EventType() string { return "Paid" }

func TestAnAppReceivesMessagesOnceEach(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	var calls atomic.Int64
	inbox, err := app.Receive(millrace.Group{Name: "payments"}, millrace.Inbox{Subscriber: broker, Topics: []string{"payments"}},
		command.Handler("paid", repo, func(c *Paid) (string, aggregate.Decision[order]) {
			calls.Add(1)
			return c.Order, place(c.Item)
		}))
	require.NoError(t, err)
	stop := start(t, app)
	for range 3 { // the broker delivers it three times
		require.NoError(t, broker.Publish("payments", message.NewMessage("p1", []byte(`{"Order":"1","Item":"tea"}`))))
	}
	await.True(t, "all are handled", func() bool { return calls.Load() == 3 })
	require.NoError(t, stop())
	loaded, err := repo.Load(t.Context(), "1")
	require.NoError(t, err)
	assert.EqualValues(t, 1, loaded.Version, "the command is executed once")
	assert.Equal(t, receive.Stats{Stored: 3}, inbox.Stats())
	require.NoError(t, broker.Publish("payments", message.NewMessage("p2", nil)), "the App does not close it")
	require.NoError(t, broker.Close())
}

// Each group on a topic gets all of its messages, and would retry those of others again and again.
func TestEachInboxHasATopicOfItsOwn(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	receiveTo := func(group, topic string) error {
		_, err := app.Receive(millrace.Group{Name: group},
			millrace.Inbox{Subscriber: gochannel.NewGoChannel(gochannel.Config{}, nil), Topics: []string{"payments"}, Receive: receive.Config{Topic: topic}},
			command.Handler("paid", repo, func(c *Paid) (string, aggregate.Decision[order]) { return c.Order, place(c.Item) }))
		return err
	}
	for field, in := range map[string]millrace.Inbox{
		"Inbox.Subscriber": {Topics: []string{"payments"}},
		"Inbox.Topics":     {Subscriber: gochannel.NewGoChannel(gochannel.Config{}, nil)},
	} {
		_, err := app.Receive(millrace.Group{Name: "payments"}, in)
		require.ErrorContains(t, err, field)
	}
	_, err = app.Receive(millrace.Group{Name: "payments", Topics: []string{"payments"}},
		millrace.Inbox{Subscriber: gochannel.NewGoChannel(gochannel.Config{}, nil), Topics: []string{"payments", "payments"}})
	require.ErrorContains(t, err, "Group.Topics")
	_, err = app.Receive(millrace.Group{Name: "payments"},
		millrace.Inbox{Subscriber: gochannel.NewGoChannel(gochannel.Config{}, nil), Topics: []string{"Payments / 1", "Payments / 1"}})
	require.ErrorContains(t, err, "twice")
	require.NoError(t, receiveTo("payments", ""))
	require.ErrorContains(t, receiveTo("others", "payments-inbox"), "the topic of another inbox")
	require.ErrorContains(t, receiveTo("others", "commands"), "Config.CommandTopic")
	require.ErrorContains(t, receiveTo("others", "order"), "the type of a definition")
	require.NoError(t, receiveTo("others", ""))
}

// TestAMessageThatCannotBeHandledHoldsUpOnlyItsKey covers a message that is no JSON. Without the
// inbox, the broker would deliver it again and again at full speed.
func TestAMessageThatCannotBeHandledHoldsUpOnlyItsKey(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	_, err = app.Receive(millrace.Group{Name: "payments", Subscriber: func(c *subscriber.Config) {
		c.Failures, c.NackResendSleep = subscriber.Park(3), time.Millisecond
	}}, millrace.Inbox{Subscriber: broker, Topics: []string{"payments"}, Receive: receive.Config{Key: func(m *message.Message) string { return m.Metadata.Get("key") }}},
		command.Handler("paid", repo, func(c *Paid) (string, aggregate.Decision[order]) { return c.Order, place(c.Item) }))
	require.NoError(t, err)
	stop := start(t, app)
	send := func(key, payload string) {
		msg := message.NewMessage(watermill.NewUUID(), []byte(payload))
		msg.Metadata.Set("key", key)
		require.NoError(t, broker.Publish("payments", msg))
	}
	send("a", `no JSON`)
	for i := range 10 {
		send(strconv.Itoa(i), `{"Order":"`+strconv.Itoa(i)+`","Item":"tea"}`)
	}
	for i := range 10 {
		await.True(t, "the others are handled", func() bool {
			loaded, err := repo.Load(t.Context(), strconv.Itoa(i))
			return err == nil && loaded.Version == 1
		})
	}
	g := app.Groups().Of("payments", "payments-inbox")
	await.True(t, "the message is parked", func() bool {
		for parked, err := range g.Parked(t.Context(), aggregate.ID{}) {
			require.NoError(t, err)
			return parked.Aggregate == aggregate.ID{Type: "payments-inbox", Value: "a"}
		}
		return false
	})
	require.NoError(t, stop())
	require.NoError(t, broker.Close())
}

func TestAMessageThatCannotBeDecodedGoesToTheDeadLetters(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	dead := make(chan error, 1)
	inbox, err := app.Receive(millrace.Group{Name: "payments"}, millrace.Inbox{Subscriber: broker, Topics: []string{"payments"}, Receive: receive.Config{
		DeadLetter: func(_ *message.Message, reason error) error { dead <- reason; return nil },
	}}, command.Handler("paid", repo, func(c *Paid) (string, aggregate.Decision[order]) { return c.Order, place(c.Item) }))
	require.NoError(t, err)
	start(t, app)
	require.NoError(t, broker.Publish("payments", message.NewMessage("p1", []byte(`{"Order":`)), message.NewMessage("p2", []byte(`{"Order":"1","Item":"tea"}`))))
	require.ErrorIs(t, await.Receive(t, dead, "the reason"), receive.ErrUndecodable)
	await.True(t, "the other message is stored", func() bool { return inbox.Stats() == receive.Stats{Stored: 1, Failed: 1} })
	require.NoError(t, app.Settle(t.Context()))
	loaded, err := repo.Load(t.Context(), "1")
	require.NoError(t, err)
	assert.EqualValues(t, 1, loaded.Version)
	require.NoError(t, broker.Close())
}

// typed reads the name of a message from another key than this module.
type typed struct{ cqrs.JSONMarshaler }

func (typed) NameFromMessage(msg *message.Message) string { return msg.Metadata.Get("type") }

func TestTheNameOfAReceivedMessageSelectsItsHandler(t *testing.T) {
	t.Parallel()
	for name, nameOf := range map[string]func(*message.Message) string{
		"the only handler": nil,
		"Config.Name":      func(m *message.Message) string { return m.Metadata.Get("kind") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := open(t, dynamotest.New(t))
			repo, err := millrace.Repository(app, orders, repository.Config{})
			require.NoError(t, err)
			broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
			inbox := millrace.Inbox{
				Subscriber: broker, Topics: []string{"payments"}, Marshaler: typed{cqrs.JSONMarshaler{GenerateName: publisher.EventName}},
				Receive: receive.Config{Name: nameOf},
			}
			received, err := app.Receive(millrace.Group{Name: "payments"}, inbox,
				command.Handler("paid", repo, func(c *Paid) (string, aggregate.Decision[order]) { return c.Order, place(c.Item) }))
			require.NoError(t, err)
			start(t, app)
			msg := message.NewMessage("p1", []byte(`{"Order":"1","Item":"tea"}`))
			msg.Metadata.Set("kind", publisher.EventName(Paid{}))
			require.NoError(t, broker.Publish("payments", msg))
			await.True(t, "it is stored", func() bool { return received.Stats().Stored == 1 })
			require.NoError(t, app.Settle(t.Context()))
			loaded, err := repo.Load(t.Context(), "1")
			require.NoError(t, err)
			assert.EqualValues(t, 1, loaded.Version)
			require.NoError(t, broker.Close())
		})
	}
}

func TestMessagesOfForeignSystems(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	inbox, err := app.Receive(millrace.Group{Name: "payments"}, millrace.Inbox{Subscriber: broker, Topics: []string{"payments"}, Receive: receive.Config{
		ID: func(m *message.Message) string { return m.Metadata.Get("offset") }, IgnoreUnknown: true,
		Pause: time.Millisecond, MaxPause: time.Millisecond,
	}}, command.Handler("paid", failing{}, func(c *Paid) (string, aggregate.Decision[order]) { return "1", nil }))
	require.NoError(t, err)
	stop := start(t, app)
	other := message.NewMessage("", nil)
	other.Metadata = message.Metadata{"name": "Other", "offset": "1"}
	require.NoError(t, broker.Publish("payments", other))
	known := message.NewMessage("", []byte(`{}`))
	known.Metadata = message.Metadata{"offset": "2", "occurred_at": "2025-01-01T00:00:00.000Z"}
	require.NoError(t, broker.Publish("payments", known))
	await.True(t, "one is stored", func() bool { return inbox.Stats().Stored == 1 })
	assert.EqualValues(t, 1, inbox.Stats().Ignored)
	lag, err := app.Groups().Of("payments", "payments-inbox").Lag(t.Context(), groups.LagOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, lag.Events)
	require.NoError(t, broker.Publish("payments", message.NewMessage("", nil)))
	await.True(t, "a message without an id is refused", func() bool { return inbox.Stats().Failed > 3 })
	require.NoError(t, stop())
	require.NoError(t, broker.Close())
}

// failing refuses to execute.
type failing struct{}

func (failing) Execute(context.Context, string, aggregate.Decision[order], ...repository.Option) (repository.Aggregate[order], error) {
	return repository.Aggregate[order]{}, errors.New("not now")
}
