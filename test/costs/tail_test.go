package costs

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

var measureTail = flag.Bool("tail", false, "measure what a group reads of the tail, for docs/operations/sizing.md (40 seconds)")

// It measures in real time, so it runs only on request.
func TestAGroupReadsNoMoreOfTheTailThanThePageOfSizingSays(t *testing.T) {
	t.Parallel()
	if !*measureTail {
		t.Skip("left to go test ./test/costs -tail")
	}
	const shards = 4
	for _, rate := range []float64{0.4, 1, 2, 4, 40, 200} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t)
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: shards, Layout: journal.Packed}))
			open := func() *journal.Journal { // one for each process
				return testjournal.Open(t, db.Client(), journal.Config{})
			}
			sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: open(), ConsumerGroup: "totals"}, nil)
			require.NoError(t, err)
			messages, err := sub.Subscribe(t.Context(), "document")
			require.NoError(t, err)
			go func() {
				for msg := range messages {
					msg.Ack()
				}
			}()
			writer := testjournal.Repository(t, open(), Documents, repository.Config{Snapshots: repository.Never, Cache: 200})
			for i := range 200 {
				testjournal.Execute(t, writer, fmt.Sprint(i), always(written(1_000, 0)))
			}
			write := func(d time.Duration) (events float64, took time.Duration) {
				begin := time.Now()
				tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
				defer tick.Stop()
				for time.Since(begin) < d {
					<-tick.C
					testjournal.Execute(t, writer, fmt.Sprint(int(events)%200), always(written(1_000, 0)))
					events++
				}
				return events, time.Since(begin)
			}
			write(15 * time.Second) // until both trailing reads always find new events

			var units float64
			recording := db.Record()
			events, took := write(25 * time.Second)
			for _, call := range recording.Calls("Query") {
				units += call.ReadUnits
			}

			perShard := events / took.Seconds() / shards
			read := units / took.Seconds() / shards
			t.Logf("%.2f events a second and shard: %.2f read units", perShard, read)
			assert.LessOrEqual(t, read, tailUnits(perShard))
			require.NoError(t, sub.Close())
		})
	}
}
