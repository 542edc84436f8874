package millrace_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Ordered is a message to other systems.
type Ordered struct{ Order, Item string }

func (Ordered) EventType() string { return "Ordered" }

var ordered = forward.On("orders", func(_ context.Context, e placed, r *journal.Record) ([]Ordered, error) {
	return []Ordered{{r.Aggregate.Value, e.Item}}, nil
})

func TestAnAppForwardsEvents(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	f, err := app.Forward(millrace.Group{Name: "out", Topics: []string{"order"}}, forward.Config{Publisher: broker}, ordered)
	require.NoError(t, err)
	stop := start(t, app)
	testjournal.Execute(t, repo, "1", place("tea"))
	messages, err := broker.Subscribe(t.Context(), "orders")
	require.NoError(t, err)
	msg := await.Receive(t, messages, "the message")
	assert.JSONEq(t, `{"Order":"1","Item":"tea"}`, string(msg.Payload))
	assert.Equal(t, "Ordered", msg.Metadata.Get(forward.NameKey))
	msg.Ack()
	await.True(t, "it is counted", func() bool { return f.Stats().Messages == 1 })
	err = groups.Of(app.Journal(), "out", "order").Reset(t.Context(), subscriber.Beginning(), nil)
	require.ErrorAs(t, err, new(*groups.ReplayError), "old messages would go out again")
	require.NoError(t, stop())
	require.NoError(t, broker.Publish("orders", message.NewMessage("after", nil)), "the App does not close it")
	require.NoError(t, broker.Close())
}

func TestABurstForwardsEvents(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	f, err := app.Forward(millrace.Group{Name: "out", Topics: []string{"order"}}, forward.Config{Publisher: broker}, ordered)
	require.NoError(t, err)
	testjournal.Execute(t, repo, "1", place("tea"))
	for range 2 {
		_, err = app.CatchUp(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, forward.Stats{Messages: 1}, f.Stats())
	require.NoError(t, broker.Close())
}

func TestWhatAnAppCannotForwardIsRefused(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	_, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
	config := forward.Config{Publisher: broker}
	_, err = app.Forward(millrace.Group{Name: "out", Topics: []string{"order"}}, forward.Config{}, ordered)
	require.ErrorAs(t, err, new(*forward.ConfigError), "no publisher")
	_, err = app.Forward(millrace.Group{Name: "out", Topics: []string{"other"}}, config, ordered)
	require.ErrorAs(t, err, new(*millrace.ConfigError), "the topic of the event is missing")
	_, err = app.Forward(millrace.Group{Name: "out", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
		c.Failures = subscriber.Defer(subscriber.Backoff{})
	}}, config, ordered)
	require.ErrorContains(t, err, "messages to other systems keep the order of events")
	start(t, app)
	_, err = app.Forward(millrace.Group{Name: "late", Topics: []string{"order"}}, config, ordered)
	require.ErrorIs(t, err, millrace.ErrStarted)
}
