package millrace_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// publishes matches the commits of the publisher of commands, and not the steps of processes.
func publishes(_ string, input any) bool {
	text, err := json.Marshal(input)
	return err == nil && strings.Contains(string(text), "commands-") && !strings.Contains(string(text), "shop-process")
}

// seldom makes the polls of minutes few.
func seldom(c *millrace.Config) {
	c.Subscriber = func(_ string, c *subscriber.Config) {
		c.Timing.PollInterval, c.Timing.MaxPollInterval = time.Second, time.Second
	}
}

// stopWhilePublishing stops an App while DynamoDB throttles the command of a process manager. It
// returns the error of stop.
func stopWhilePublishing(t *testing.T, db *dynamotest.DB, throttled, stopTimeout time.Duration) error {
	t.Helper()
	app := open(t, db, seldom, func(c *millrace.Config) { c.StopTimeout = stopTimeout })
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
	require.NoError(t, err)
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	refused := make(chan struct{}, 1000)
	throttle := db.Inject(dynamotest.Throttle(), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Matching(func(operation string, input any) bool {
		if !publishes(operation, input) {
			return false
		}
		refused <- struct{}{}
		return true
	}))
	testjournal.Execute(t, repo, "1", place("tea"))
	<-refused
	time.AfterFunc(throttled, throttle.Remove)
	err = stop()
	throttle.Remove()
	return err
}

// ships runs another App, and returns the UUIDs of the commands that it receives in a minute.
func ships(t *testing.T, db *dynamotest.DB) (ids map[string]int) {
	t.Helper()
	app := open(t, db, seldom)
	_, err := millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
	require.NoError(t, err)
	received := make(chan string, 1000)
	require.NoError(t, app.Handle(millrace.Group{Name: "commands", Topics: []string{"commands"}}, func(msg *message.Message) error {
		received <- msg.UUID
		return nil
	}))
	stop, err := app.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	time.Sleep(time.Minute)
	require.NoError(t, stop())
	ids = map[string]int{}
	for len(received) > 0 {
		ids[<-received]++
	}
	return ids
}

func TestAStopWaitsForWhatIsBeingPublished(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, stopWhilePublishing(t, db, 15*time.Second, 0))
		assert.Len(t, ships(t, db), 1)
	})
}

// An outage may last longer than the App has to stop.
func TestAStopThatCutsOffACommandLosesNothing(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		begun := time.Now()
		// The publisher itself gives up after 30 seconds.
		err := stopWhilePublishing(t, db, time.Hour, 20*time.Second)
		require.ErrorIs(t, err, publisher.ErrCloseTimeout)
		assert.LessOrEqual(t, time.Since(begun), 26*time.Second)
		assert.Len(t, ships(t, db), 1)
	})
}
