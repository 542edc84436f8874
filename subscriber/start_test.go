package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// If Subscribe returned an error, Router.Run would return it, and the program would end.
func TestASubscriptionBeginsAmidADisturbance(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"throttled": dynamotest.Throttle(), "an internal error": dynamotest.InternalError(), "a cut connection": dynamotest.CutConnection(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 1)
			write(t, open(t, client), "x", 0, 1)
			proxy := dynamotest.NewProxy(t, client)
			j := open(t, proxy.Client(testdb.Once))
			faults := proxy.Inject(fault, dynamotest.Table("checkpoint"), dynamotest.Times(6))
			_, messages := subscribe(t, quick(j))
			receive(t, messages).Ack()
			assert.Equal(t, 6, faults.Fired())
		})
	}
}

func TestASubscriptionThatCannotBeginEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		proxy := dynamotest.NewProxy(t, create(t, 1))
		sub, err := subscriber.NewSubscriber(quick(open(t, proxy.Client(testdb.Once))), nil)
		require.NoError(t, err)
		proxy.Inject(dynamotest.Throttle(), dynamotest.Table("checkpoint"))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = sub.Subscribe(ctx, topic)
		require.ErrorIs(t, err, journal.ErrThrottled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, sub.Close())
	})
}

func TestASubscriberIsJoinedWhenItsGroupExists(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		proxy := dynamotest.NewProxy(t, create(t, 1))
		j := open(t, proxy.Client(testdb.Once))
		proxy.Inject(dynamotest.Pause(func(context.Context) { time.Sleep(time.Second) }), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
		sub, _ := subscribe(t, quick(j))
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()

		require.ErrorIs(t, sub.WaitJoined(soon), context.DeadlineExceeded)
		require.NoError(t, sub.WaitJoined(t.Context()))

		_, err := groups.Of(j, "group", topic).Status(t.Context())
		require.NoError(t, err)
		require.NoError(t, sub.Close())
		require.ErrorIs(t, sub.WaitJoined(t.Context()), subscriber.ErrSubscriberClosed)
	})
}
