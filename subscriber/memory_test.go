package subscriber_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// beforeAnOutage writes an event of each aggregate, and returns a config with which a number of
// aggregates may fail.
func beforeAnOutage(t *testing.T, shards, aggregates, most int) subscriber.Config {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: shards}))
	before := earlier(t, db.Client())
	for n := range aggregates {
		write(t, before, fmt.Sprint(n), 0, 1)
	}
	db.Inject(dynamotest.SmallPages(5), dynamotest.Index("journal-tail-index"))
	config := subscriber.Config{Journal: open(t, db.Client()), ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: time.Hour}}
	config.StateBytes, config.BufferBytes = 8*most<<10, 64<<10
	return config
}

// All handlers of a process fail, as in an outage of what they call.
func TestFailingAggregatesOfAllShardsShareOneLimit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const shards, aggregates, most = 8, 1_000, 128
		config := beforeAnOutage(t, shards, aggregates, most)
		sub, messages := subscribe(t, config)
		stop := make(chan struct{})
		go func() {
			for msg := range messages {
				select {
				case <-stop:
					msg.Ack()
				default:
					msg.Nack()
				}
			}
		}()
		time.Sleep(5 * time.Minute)
		failing := 0
		for _, s := range sub.Shards() {
			failing += s.Blocked
		}
		assert.GreaterOrEqual(t, failing, most, "the limit is used")
		const readAhead = 64 + shards*5
		assert.LessOrEqual(t, failing, 2*most+readAhead)
		t.Logf("%d of %d aggregates are in memory", failing, aggregates)

		close(stop)
		for began := time.Now(); sub.Stats().Acked < aggregates && time.Since(began) < time.Hour; {
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, aggregates, sub.Stats().Acked, "the rest has waited in the journal")
	})
}

// Each deployment in an outage begins with the aggregates that the former owner has listed.
func TestFailingAggregatesDoNotAddUpOverRestarts(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const shards, aggregates, most = 4, 1_200, 128
		config := beforeAnOutage(t, shards, aggregates, most)
		for restart := range 3 {
			sub, messages := subscribe(t, config)
			go func() {
				for msg := range messages {
					msg.Nack()
				}
			}()
			time.Sleep(3 * time.Minute)
			known := uint64(0)
			for _, s := range sub.Shards() {
				known += s.Behind
			}
			t.Logf("%d of %d aggregates are in memory", known, aggregates)
			const readAhead = 64 + shards*5
			assert.LessOrEqual(t, known, uint64(2*most+readAhead), restart)
			require.NoError(t, sub.Close())
		}
	})
}
