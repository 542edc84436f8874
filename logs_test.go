package millrace_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/repository"
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
