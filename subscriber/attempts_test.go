package subscriber_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// fail nacks the next deliveries of an event.
func fail(t *testing.T, config subscriber.Config, times int) *subscriber.Subscriber {
	t.Helper()
	sub, messages := subscribe(t, config)
	for range times {
		msg := receive(t, messages)
		assert.Equal(t, "x/1", string(msg.Payload))
		subscriber.SetNackReason(msg.Context(), errors.New("no stock"))
		msg.Nack()
	}
	eventually(t, "the failures are known", func() bool { return sub.Stats().Nacked == uint64(times) })
	time.Sleep(time.Second)
	return sub
}

func TestAttemptsAreCountedOverRestarts(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]subscriber.FailurePolicy{"park": subscriber.Park(5), "skip": subscriber.Skip(5)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
				j := open(t, client)
				write(t, j, "x", 0, 2)
				config := quick(j)
				config.Failures = policy
				config.NackResendSleep, config.MaxNackResendSleep = time.Minute, time.Minute
				require.NoError(t, fail(t, config, 1).Close())
				require.NoError(t, fail(t, config, 1).Close())
				config.NackResendSleep, config.MaxNackResendSleep = time.Millisecond, time.Millisecond
				sub := fail(t, config, 3)
				assert.EqualValues(t, 1, sub.Stats().Parked+sub.Stats().Skipped)
				for parked, err := range groups.Of(j, "group", topic).Parked(t.Context(), aggregate.ID{}) {
					require.NoError(t, err)
					assert.Contains(t, parked.Parked.Reason, "5 times")
					assert.Equal(t, 5, parked.Parked.Attempts)
				}
			})
		})
	}
}

// After a crash, the next owner counts on from them.
func TestAnEntryHasTheAttemptsSoFar(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.Failures = subscriber.Park(5)
		config.NackResendSleep, config.MaxNackResendSleep = 10*time.Second, time.Hour
		config.Timing.BehindAfter = 15 * time.Second
		fail(t, config, 3)
		write(t, j, "y", 0, 1) // the cursor can pass x
		time.Sleep(time.Minute)
		var listed []groups.BehindAggregate
		for b, err := range groups.Of(j, "group", topic).Behind(t.Context(), aggregate.ID{}) {
			require.NoError(t, err)
			listed = append(listed, b)
		}
		require.Len(t, listed, 1)
		assert.Equal(t, 3, listed[0].Failure.Attempts)
	})
}
