package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// The tail of the packed layout is in the order of writing. So reconciliations read it again
// instead of listing the aggregates.
func TestAReconciliationReadsAgainWhatWasWrittenLately(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		lists := proxy.Inject(dynamotest.Pause(func(context.Context) {}), dynamotest.On("Query"), dynamotest.Matching(func(_ string, in any) bool {
			q, ok := in.(*dynamodb.QueryInput)
			return ok && q.IndexName != nil && *q.IndexName == "journal-aid-index"
		}))
		j := open(t, proxy.Client())
		write(t, j, "known", 0, 2)
		config := quick(j)
		config.Timing.PollInterval, config.Timing.MaxPollInterval, config.Timing.CommitInterval = time.Minute, time.Minute, time.Minute
		config.Timing.LeaseDuration, config.Timing.ReconcileInterval = time.Hour, time.Hour
		sub, messages := subscribe(t, config)
		receiveAll(t, messages, 2)
		reconciled := func() time.Time { return progress(t, j).Reconciled }
		await := func(what string, done func() bool) {
			begun := time.Now()
			for !done() {
				require.Less(t, time.Since(begun), 30*time.Hour, what)
				time.Sleep(time.Minute)
			}
		}
		await("first sweep", func() bool { return reconciled().Unix() > 0 })
		busy := 0
		next := func() {
			before := reconciled()
			await("next sweep", func() bool { return reconciled().After(before) })
			write(t, j, "busy", busy, 1)
			receiveIn(t, messages, 1, time.Hour)
			busy++
			time.Sleep(5 * time.Minute) // the tail is final beyond that
		}
		next()

		// An event appears in the tail long before the place up to which reconciliations have read.
		late := func(id string, after, n int, age time.Duration) {
			was := time.Now().Add(-age)
			write(t, at(t, client, func() time.Time { return was }), id, after, n)
		}
		late("new", 0, 3, 50*time.Minute)
		late("known", 2, 1, 40*time.Minute)
		assert.ElementsMatch(t, append(expect("new", 1, 3), "known/3"), receiveIn(t, messages, 4, 2*time.Hour))
		next()
		assert.Zero(t, lists.Fired(), "no sweep lists the aggregates")
		assert.EqualValues(t, 4, sub.Stats().Reconciled)

		next()
		late("old", 0, 1, 240*time.Hour)
		require.NoError(t, groups.Of(j, "group", topic).Reconcile(t.Context()))
		assert.Equal(t, expect("old", 1, 1), receiveIn(t, messages, 1, time.Hour), "where an operator asks")
		assert.Positive(t, lists.Fired())
	})
}

// receiveIn acks n messages that are delivered within a time.
func receiveIn(t *testing.T, messages <-chan *message.Message, n int, within time.Duration) (payloads []string) {
	t.Helper()
	patience := time.After(within)
	for range n {
		select {
		case msg := <-messages:
			payloads = append(payloads, string(msg.Payload))
			msg.Ack()
		case <-patience:
			require.Fail(t, "a message is missing", "came: %v", payloads)
		}
	}
	return payloads
}

// The first reconciliation of a week finds an event at any place of the tail.
func TestTheFirstReconciliationOfAWeekComparesAllAggregates(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		j := open(t, client)
		config := quick(j)
		config.Timing.PollInterval, config.Timing.MaxPollInterval, config.Timing.CommitInterval = time.Minute, time.Minute, time.Minute
		config.Timing.LeaseDuration, config.Timing.ReconcileInterval = time.Hour, time.Hour
		_, messages := subscribe(t, config)
		write(t, j, "x", 0, 1)
		receiveIn(t, messages, 1, time.Hour)
		time.Sleep(5 * time.Minute)
		write(t, at(t, client, func() time.Time { return time.Unix(1, 0) }), "lost", 0, 1)
		assert.Equal(t, expect("lost", 1, 1), receiveIn(t, messages, 1, 8*24*time.Hour))
	})
}
