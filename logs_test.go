package millrace_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// lines returns what was logged with a message.
func lines(log *watermill.CaptureLoggerAdapter, level watermill.LogLevel, msg string) (found []watermill.CapturedMessage) {
	for _, line := range log.Captured()[level] {
		if line.Msg == msg {
			found = append(found, line)
		}
	}
	return found
}

func send(t *testing.T, app *millrace.App, command any) (uuid string) {
	t.Helper()
	msg, err := app.Marshaler().Marshal(command)
	require.NoError(t, err)
	require.NoError(t, app.Publisher().Publish("commands", msg))
	return msg.UUID
}

func TestAnAppLogsTheCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		log := watermill.NewCaptureLogger()
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.Logger = log })
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(c *shipOrder) (string, aggregate.Decision[order]) {
			return c.Order, func(order) (aggregate.Events[order], error) { return nil, errors.New("no such order") }
		})))
		start(t, app)

		uuid := send(t, app, shipOrder{"7"})

		time.Sleep(time.Second)
		refused := lines(log, watermill.InfoLogLevel, "Command is refused, and is not delivered again")
		require.Len(t, refused, 1)
		assert.Subset(t, refused[0].Fields, watermill.LogFields{
			"aggregate_type": "order", "aggregate_id": "7", "command": "millrace_test.shipOrder", "message_uuid": uuid, "reason": "no such order",
			"consumer_group": "commands", "topic": "commands",
		})
	})
}

func TestAnAppLogsAFailureOfAHandlerOnceWithItsEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		log := watermill.NewCaptureLogger()
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.Logger = log })
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error {
			return errors.New("no mail server")
		}))
		start(t, app)

		testjournal.Execute(t, repo, "7", place("tea"))

		time.Sleep(50 * time.Millisecond)
		errs := log.Captured()[watermill.ErrorLogLevel]
		require.Len(t, errs, 1)
		assert.EqualError(t, errs[0].Err, "no mail server")
		assert.Equal(t, watermill.LogFields{
			"topic": "order", "consumer_group": "mails", "aggregate_id": "7", "number": uint64(1), "event_type": "order.placed.v2",
			"attempts": 1, "pause": 100 * time.Millisecond,
		}, errs[0].Fields)
	})
}

// The subscriber logs nothing after it has given up a message.
func TestAnAppLogsTheErrorOfALateHandler(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		log := watermill.NewCaptureLogger()
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.Logger = log },
			subscribing(func(_ string, c *subscriber.Config) { c.AckDeadline = time.Second }))
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(msg *message.Message) error {
			if attempt, _ := subscriber.AttemptFromContext(msg.Context()); attempt > 1 {
				return nil
			}
			time.Sleep(time.Minute)
			return errors.New("no mail server")
		}))
		start(t, app)

		testjournal.Execute(t, repo, "7", place("tea"))

		time.Sleep(time.Minute + 500*time.Millisecond)
		assert.NotEmpty(t, lines(log, watermill.ErrorLogLevel, "Handler returned error"))
	})
}

func TestACommandWithoutAHandlerSaysWhatToDo(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		log := watermill.NewCaptureLogger()
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.Logger = log })
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(c *shipOrder) (string, aggregate.Decision[order]) {
			return c.Order, c.decide
		})))
		start(t, app)

		send(t, app, placed{"tea"})

		time.Sleep(time.Second)
		errs := log.Captured()[watermill.ErrorLogLevel]
		require.NotEmpty(t, errs)
		require.ErrorIs(t, errs[0].Err, command.ErrUnknown)
		assert.EqualError(t, errs[0].Err, `no handler handles the command "order.placed.v2": start a process that handles it, `+
			"or skip its message with: millrace group skip commands commands "+errs[0].Fields["aggregate_id"].(string)+" 1")
	})
}

func TestTheErrorOfAStopNamesTheHandlersThatAreRunning(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.StopTimeout, c.HandlerTimeout = 100*time.Millisecond, time.Minute })
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	arrived, hang := make(chan struct{}, 20), make(chan struct{})
	t.Cleanup(func() { close(hang) })
	require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error {
		arrived <- struct{}{}
		<-hang
		return nil
	}))
	stop, err := app.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	for n := range 12 {
		testjournal.Execute(t, repo, fmt.Sprint(n), place("tea"))
	}
	for range 12 {
		await.Receive(t, arrived, "an event")
	}

	err = stop()

	require.ErrorContains(t, err, "not stopped within 100ms")
	assert.Regexp(t, `in handlers: (event 1 of order-\d+ \(order.placed.v2\) in group "mails" for [\d.]+m?s; ){10}and 2 more`, err.Error())
}
