package subscriber_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// An outage of what the handlers need lasts for hours, and each attempt reads an event.
func TestManyBlockedAggregatesCostLittleAndContinueSoon(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const aggregates = 600
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		before := earlier(t, db.Client())
		for n := range aggregates {
			write(t, before, fmt.Sprint(n), 0, 1)
		}
		config := subscriber.Config{Journal: open(t, db.Client()), ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: time.Hour}}
		sub, messages := subscribe(t, config)
		var healthy atomic.Bool
		go func() {
			for msg := range messages {
				if healthy.Load() {
					msg.Ack()
				} else {
					msg.Nack()
				}
			}
		}()
		time.Sleep(5 * time.Minute)
		recording := db.Record()
		const while = 5 * time.Minute
		time.Sleep(while)
		recording.Stop()

		read, _ := recording.Units("GetItem")
		assert.LessOrEqual(t, read/while.Seconds(), 10.5, "read units a second")
		assert.GreaterOrEqual(t, read/while.Seconds(), 5.0, "there are probes")

		healthy.Store(true)
		began := time.Now()
		for sub.Stats().Acked < aggregates && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, aggregates, sub.Stats().Acked)
		assert.LessOrEqual(t, time.Since(began), 31*time.Second)
	})
}

// Many aggregates are blocked for a long time, and another one fails for some seconds.
func TestAnAggregateThatBeginsToFailPassesBlockedOnes(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const aggregates = 600
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		before := earlier(t, db.Client())
		for n := range aggregates {
			write(t, before, fmt.Sprint(n), 0, 1)
		}
		j := open(t, db.Client())
		_, messages := subscribe(t, subscriber.Config{Journal: j, ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: time.Hour}})
		acked := make(chan struct{})
		go func() {
			for msg := range messages {
				id, _, _ := subscriber.AggregateFromContext(msg.Context())
				attempt := msg.Metadata.Get(subscriber.DeliveryAttemptKey)
				if id.Value == "new" && attempt == "7" {
					msg.Ack()
					close(acked)
				} else {
					msg.Nack()
				}
			}
		}()
		time.Sleep(8 * time.Minute)

		began := time.Now()
		write(t, j, "new", 0, 1)
		<-acked
		assert.LessOrEqual(t, time.Since(began), 10*time.Second, "its pauses have 6.3 seconds")
	})
}
