package millrace_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// commandsOf is an App whose processes send commands.
type commandsOf struct {
	*millrace.App
	orders *repository.Repository[order]
}

func eachCommandsOf(t *testing.T, retention time.Duration, test func(t *testing.T, c commandsOf)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			app := open(t, dynamotest.New(t), func(c *millrace.Config) {
				c.Journal.Layout, c.CommandRetention = layout, retention
				c.Subscriber = func(_ string, s *subscriber.Config) { s.Timing.MaxPollInterval = time.Second }
			})
			repo, err := millrace.Repository(app, orders, repository.Config{})
			require.NoError(t, err)
			_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
			require.NoError(t, err)
			require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(c *shipOrder) (string, aggregate.Decision[order]) {
				return c.Order, c.decide
			})))
			test(t, commandsOf{app, repo})
		})
	})
}

func (c commandsOf) place(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		testjournal.Execute(t, c.orders, fmt.Sprint(i), place("tea"))
	}
}

// count returns the number of stored events of a topic.
func (c commandsOf) count(t *testing.T, topic string) (n int) {
	t.Helper()
	for _, err := range c.Journal().Tail(t.Context(), topic, time.Time{}) {
		require.NoError(t, err)
		n++
	}
	return n
}

func (c commandsOf) sweep(t *testing.T) {
	t.Helper()
	_, err := c.CatchUp(t.Context())
	require.NoError(t, err)
}

func TestSweepsRemoveCommandsAfterAWeek(t *testing.T) {
	t.Parallel()
	eachCommandsOf(t, 0, func(t *testing.T, c commandsOf) {
		const many = 10
		c.place(t, many)
		c.sweep(t)
		require.Equal(t, many, c.count(t, "commands"))
		time.Sleep(7*24*time.Hour - time.Minute)
		c.sweep(t)
		assert.Equal(t, many, c.count(t, "commands"))
		time.Sleep(2 * time.Hour)

		c.sweep(t)

		assert.Zero(t, c.count(t, "commands"))
		assert.Equal(t, 2*many, c.count(t, "shipping"), "the processes stay")
		assert.Equal(t, 2*many, c.count(t, "order"))
	})
}

func TestARunningAppRemovesCommands(t *testing.T) {
	t.Parallel()
	eachCommandsOf(t, 2*time.Minute, func(t *testing.T, c commandsOf) {
		stop, err := c.Start(t.Context())
		require.NoError(t, err)
		const many = 10
		c.place(t, many)
		time.Sleep(time.Minute)
		require.Equal(t, many, c.count(t, "commands"))

		time.Sleep(12 * time.Minute)

		assert.Zero(t, c.count(t, "commands"))
		assert.Equal(t, 2*many, c.count(t, "order"))
		require.NoError(t, stop())
	})
}

func TestCommandsStayIfTheirRetentionIsOff(t *testing.T) {
	t.Parallel()
	eachCommandsOf(t, -1, func(t *testing.T, c commandsOf) {
		c.place(t, 1)
		c.sweep(t)
		time.Sleep(1000 * time.Hour)
		c.sweep(t)
		assert.Equal(t, 1, c.count(t, "commands"))
	})
}

// The program that handles the commands may be deployed later than one that only records them.
func TestCommandsStayUntilTheirGroupExists(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		sender := open(t, db)
		repo, err := millrace.Repository(sender, orders, repository.Config{})
		require.NoError(t, err)
		_, err = millrace.Process(t.Context(), sender, shippings, process.Config{}, "order")
		require.NoError(t, err)
		audit := open(t, db)
		require.NoError(t, audit.Handle(millrace.Group{Name: "audit", Topics: []string{"commands"}}, func(*message.Message) error { return nil }))
		c := commandsOf{sender, repo}
		c.place(t, 3)
		c.sweep(t)
		_, err = audit.CatchUp(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * 24 * time.Hour)

		c.sweep(t)
		assert.Equal(t, 3, c.count(t, "commands"))
		handler := open(t, db)
		handled := 0
		require.NoError(t, handler.HandleCommands(cqrs.NewCommandHandler("ship", func(context.Context, *shipOrder) error { handled++; return nil })))
		_, err = handler.CatchUp(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3, handled)
		time.Sleep(2 * time.Hour)
		c.sweep(t)
		assert.Zero(t, c.count(t, "commands"))
	})
}

func TestReceivedMessagesAreRemovedToo(t *testing.T) {
	t.Parallel()
	eachCommandsOf(t, 2*time.Minute, func(t *testing.T, c commandsOf) {
		broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
		inbox := millrace.Inbox{Subscriber: broker, Receive: receive.Config{Key: func(m *message.Message) string { return m.Metadata.Get("key") }}}
		_, err := c.Receive(millrace.Group{Name: "payments", Topics: []string{"paid"}}, inbox,
			command.Handler("paid", c.orders, func(p *Paid) (string, aggregate.Decision[order]) { return p.Order, place(p.Item) }))
		require.NoError(t, err)
		stop, err := c.Start(t.Context())
		require.NoError(t, err)
		for i, key := range []string{"", "", "a", "a", "b"} {
			msg := message.NewMessage(fmt.Sprint(i), fmt.Appendf(nil, `{"Order":"%d","Item":"tea"}`, i))
			msg.Metadata.Set("key", key)
			require.NoError(t, broker.Publish("paid", msg))
		}
		time.Sleep(time.Minute)
		require.Equal(t, 5, c.count(t, "payments-inbox"))

		time.Sleep(12 * time.Minute)

		assert.Zero(t, c.count(t, "payments-inbox"))
		assert.Equal(t, 10, c.count(t, "order"))
		require.NoError(t, stop())
		require.NoError(t, broker.Close())
	})
}

func TestATopicOfReceivedMessagesIsNoAggregate(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	paid := command.Handler("paid", repo, func(p *Paid) (string, aggregate.Decision[order]) { return p.Order, place(p.Item) })
	broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
	var invalid *millrace.ConfigError

	_, err = app.Receive(millrace.Group{Name: "payments", Topics: []string{"paid"}}, millrace.Inbox{Subscriber: broker, Receive: receive.Config{Topic: "order"}}, paid)

	require.ErrorAs(t, err, &invalid)
	_, err = app.Receive(millrace.Group{Name: "payments", Topics: []string{"paid"}}, millrace.Inbox{Subscriber: broker, Receive: receive.Config{Topic: "shipping"}}, paid)
	require.NoError(t, err)
	_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
	require.ErrorAs(t, err, &invalid)
}

// A group would get the messages of the other handlers too, and each would block its stream.
func TestATopicOfReceivedMessagesHasNoOtherMessages(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
	on := func(group, topic string) error {
		_, err := app.Receive(millrace.Group{Name: group, Topics: []string{"paid"}}, millrace.Inbox{Subscriber: broker, Receive: receive.Config{Topic: topic}},
			command.Handler("paid", failing{}, func(p *Paid) (string, aggregate.Decision[order]) { return p.Order, place(p.Item) }))
		return err
	}
	require.NoError(t, on("payments", ""))
	require.NoError(t, on("others", "others"))
	for _, taken := range []string{"payments-inbox", "others", "commands"} {
		var invalid *millrace.ConfigError
		require.ErrorAs(t, on("third", taken), &invalid, taken)
		assert.Equal(t, "Inbox.Receive.Topic", invalid.Field)
	}
	require.NoError(t, on("third", ""))
}

func TestATopicOfCommandsIsNoAggregate(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.CommandTopic = "order" })
	_, err := millrace.Repository(app, orders, repository.Config{})
	require.ErrorContains(t, err, `definition of "order" has the name of a topic of commands`)
	_, err = millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{CommandRetention: time.Second})
	require.ErrorContains(t, err, "CommandRetention is less than a minute")
}
