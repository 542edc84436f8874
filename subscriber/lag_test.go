package subscriber_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// lagging runs a test with a subscriber whose clock and reconciliations have their defaults, in a
// bubble, in each layout. The subscriber polls rarely, because the tests take hours.
func lagging(t *testing.T, test func(t *testing.T, db *dynamotest.DB, sub *subscriber.Subscriber, own, other *journal.Journal, handled *deliveries)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			db := dynamotest.New(t)
			own := testjournal.New(t, db.Client(), journal.Config{Shards: 1, Layout: layout})
			sub, messages := subscribe(t, subscriber.Config{Journal: own, ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: time.Hour, PollInterval: time.Second}})
			handled := &deliveries{last: map[string]uint64{}}
			go func() {
				for msg := range messages {
					assert.NoError(t, handled.note(msg))
					msg.Ack()
				}
			}()
			time.Sleep(time.Minute)
			test(t, db, sub, own, open(t, db.Client()), handled)
		})
	})
}

const tailIndex = "journal-tail-index"

func TestALagOfTheIndexOfMinutesBringsAReconciliationForward(t *testing.T) {
	t.Parallel()
	lagging(t, func(t *testing.T, db *dynamotest.DB, sub *subscriber.Subscriber, _, other *journal.Journal, handled *deliveries) {
		const aggregates = 200
		lag := db.Inject(dynamotest.DelayIndex(0, 4*time.Minute), dynamotest.Index(tailIndex))
		for n := range aggregates {
			write(t, other, fmt.Sprint(n), 0, 1)
			time.Sleep(time.Second)
		}
		lag.Remove()
		time.Sleep(12 * time.Minute)
		for n := range aggregates {
			assert.EqualValues(t, 1, handled.has(fmt.Sprint(n)), n)
		}
		assert.Positive(t, sub.Stats().Reconciled, "trailing reads have missed some")
		early := sub.Stats().Early
		assert.Positive(t, early)
		assert.LessOrEqual(t, early, uint64(5), "at most one in five minutes")

		time.Sleep(30 * time.Minute)
		assert.LessOrEqual(t, sub.Stats().Early, early+3, "they end with the lag")
	})
}

// The tail never shows an event in time, but this process has made the commit and knows it.
func TestACommitThatTheTailDoesNotShowBringsAReconciliationForward(t *testing.T) {
	t.Parallel()
	lagging(t, func(t *testing.T, db *dynamotest.DB, sub *subscriber.Subscriber, own, other *journal.Journal, handled *deliveries) {
		var shown atomic.Bool
		db.Inject(dynamotest.Hide(func(item map[string]types.AttributeValue) bool {
			return !shown.Load() && strings.Contains(nameOf(item), "-hidden")
		}), dynamotest.Index(tailIndex))
		write(t, own, "hidden-own", 0, 1)
		write(t, other, "hidden-other", 0, 1)
		for n := range 60 {
			write(t, other, "shown", n, 1)
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 1, handled.has("hidden-own"), "a wake-up has brought it")
		assert.Zero(t, handled.has("hidden-other"))
		shown.Store(true)
		time.Sleep(8 * time.Minute)
		assert.EqualValues(t, 1, handled.has("hidden-other"))
	})
}

func TestAnIndexThatDoesNotLagBringsNoReconciliationForward(t *testing.T) {
	t.Parallel()
	lagging(t, func(t *testing.T, db *dynamotest.DB, sub *subscriber.Subscriber, own, other *journal.Journal, _ *deliveries) {
		db.Inject(dynamotest.DelayIndex(0, 4*time.Second), dynamotest.Index(tailIndex))
		for n := range 300 {
			write(t, own, fmt.Sprint("own", n%7), n/7, 1)
			write(t, other, fmt.Sprint("other", n%7), n/7, 1)
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Minute)
		assert.Zero(t, sub.Stats().Early)
		assert.Zero(t, sub.Stats().Reconciled)
	})
}

// The journal corrects the clock of the machine by the times of the database.
func TestAWrongClockOfTheMachineIsNoLag(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := dynamotest.New(t)
				db.Clock().Advance(-ahead)
				require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
				own, other := open(t, db.Client()), open(t, db.Client())
				sub, messages := subscribe(t, subscriber.Config{Journal: own, ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: time.Hour, PollInterval: time.Second}})
				handled := &deliveries{last: map[string]uint64{}}
				go func() {
					for msg := range messages {
						assert.NoError(t, handled.note(msg))
						msg.Ack()
					}
				}()
				var hiding atomic.Bool
				db.Inject(dynamotest.Hide(func(item map[string]types.AttributeValue) bool {
					return hiding.Load() && strings.Contains(nameOf(item), "-hidden")
				}), dynamotest.Index(tailIndex))
				db.Inject(dynamotest.DelayIndex(0, 2*time.Second), dynamotest.Index(tailIndex))
				for n := range 60 {
					write(t, own, fmt.Sprint("shown", n%7), n/7, 1)
					time.Sleep(900 * time.Millisecond)
				}
				time.Sleep(10 * time.Minute)
				assert.Zero(t, sub.Stats().Early)

				hiding.Store(true)
				write(t, other, "hidden-other", 0, 1)
				for n := range 60 {
					write(t, own, "hidden-own", n, 1)
					write(t, other, "passing", n, 1)
					time.Sleep(time.Second)
				}
				assert.Zero(t, handled.has("hidden-other"))
				hiding.Store(false)
				time.Sleep(8 * time.Minute)
				assert.EqualValues(t, 1, handled.has("hidden-other"), "a lag is still found")
			})
		})
	}
}

// A comparison of all aggregates finds those of which the group knows nothing.
func TestAggregatesFromBeforeTheGroupAreNoLag(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		before := at(t, client, func() time.Time { return time.Now().Add(-10 * time.Minute) })
		for n := range 100 {
			write(t, before, fmt.Sprint(n), 0, 1)
		}
		config := subscriber.Config{Journal: open(t, client), ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: time.Hour}, Start: subscriber.Now()}
		sub, _ := subscribe(t, config)
		began := time.Now()
		time.Sleep(70 * time.Minute)
		assert.True(t, progress(t, config.Journal).Reconciled.After(began))
		assert.Zero(t, sub.Stats().Early)
		assert.Zero(t, sub.Stats().Delivered)
	})
}

// The entry of the behind list has led to these events. The tail does not show them again.
func TestABlockedAggregateOfAFormerOwnerIsNoLag(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		config := subscriber.Config{Journal: j, ConsumerGroup: "group", Timing: subscriber.Timing{
			// Few polls, for less work in the hours below.
			LeaseDuration: time.Hour, PollInterval: 10 * time.Second, MaxPollInterval: 10 * time.Second,
		}}
		var healthy atomic.Bool
		member := func() *subscriber.Subscriber {
			sub, messages := subscribe(t, config)
			go func() {
				for msg := range messages {
					if healthy.Load() {
						msg.Ack()
					} else {
						msg.Nack()
					}
				}
			}()
			return sub
		}
		write(t, j, "x", 0, 3)
		former := member()
		for n := range 5 { // the cursor passes x
			time.Sleep(time.Minute)
			write(t, j, "y", n, 1)
		}
		require.NoError(t, former.Close())

		sub := member()
		time.Sleep(70 * time.Minute) // it compares all aggregates meanwhile
		healthy.Store(true)
		recovered := time.Now()
		time.Sleep(70 * time.Minute)
		assert.True(t, progress(t, j).Reconciled.After(recovered))
		assert.Positive(t, sub.Stats().Acked)
		assert.Zero(t, sub.Stats().Reconciled)
		assert.Zero(t, sub.Stats().Early)
	})
}
