package subscriber_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// withParked returns a journal with one shard, in which former owners of a group have left parked
// aggregates with one event each.
func withParked(t *testing.T, layout journal.Layout, aggregates int) (*dynamotest.DB, *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Shards: 1, Layout: layout})
	store := checkpoint.New(j)
	first, _ := subscribe(t, quick(j))
	eventually(t, "the group has begun", func() bool { return len(first.Shards()) == 1 })
	require.NoError(t, first.Close())
	for n := range aggregates {
		id := fmt.Sprint("parked", n)
		write(t, j, id, 0, 1)
		require.NoError(t, store.ListBehind(t.Context(), checkpoint.Group{Name: "group"}, checkpoint.Revision{}, checkpoint.Behind{
			Aggregate: account(id), Head: 1, Parked: &checkpoint.Failure{Number: 1, At: time.Now(), Reason: "broken"},
		}))
	}
	require.NoError(t, store.SaveCursor(t.Context(), checkpoint.Shard{Group: checkpoint.Group{Name: "group"}, Topic: topic}, checkpoint.CursorRow{Epoch: 1, Cursor: time.Now(), Reconciled: time.Now()}))
	return db, j
}

func TestATakeoverGoesOnWhileTheTableIsThrottled(t *testing.T) {
	t.Parallel()
	const aggregates = 1_000
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db, j := withParked(t, layout, aggregates)
		db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.2))
		recording := db.Record()
		defer recording.Stop()
		sub, messages := subscribe(t, quick(j))
		write(t, j, "healthy", 0, 1)
		assert.Equal(t, expect("healthy", 1, 1), receiveAll(t, messages, 1))

		eventually(t, "all parked aggregates are verified", func() bool {
			verified := 0
			for _, call := range recording.Calls("BatchGetItem") {
				if call.Err == nil {
					verified++
				}
			}
			return verified >= aggregates/100
		})
		assert.Equal(t, aggregates, sub.Shards()[0].Parked)
		writes := len(recording.Calls("UpdateItem", "DeleteItem", "TransactWriteItems"))
		t.Logf("%d requests, %d of them writes", len(recording.Calls()), writes)
		assert.Less(t, writes, aggregates/10, "a takeover rewrites nothing")
	})
}

// The behind list of a shard has many pages. They are slow, and some are throttled. None is read
// twice.
func TestATakeoverReadsEachPageOfALongListOnce(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const aggregates = 4_000
		db, j := withParked(t, journal.Classic, 1)
		store := checkpoint.New(j)
		for n := range aggregates {
			require.NoError(t, store.ListBehind(t.Context(), checkpoint.Group{Name: "group"}, checkpoint.Revision{}, checkpoint.Behind{
				Aggregate: account(fmt.Sprint("long", n)), Head: 1, Parked: &checkpoint.Failure{Number: 1, At: time.Now(), Reason: strings.Repeat("r", 1000)},
			}))
		}
		ofList := []dynamotest.When{dynamotest.On("Query"), dynamotest.Table("checkpoint")}
		db.Inject(dynamotest.Latency(4*time.Second, 4*time.Second), ofList...)
		// The SDK makes three attempts for each request.
		db.Inject(dynamotest.Throttle(), append(ofList, dynamotest.After(2), dynamotest.Times(7))...)
		recording := db.Record()
		defer recording.Stop()
		_, messages := subscribe(t, quick(j))
		write(t, j, "healthy", 0, 1)
		assert.Equal(t, expect("healthy", 1, 1), receiveAll(t, messages, 1))

		pages := 0
		for _, call := range recording.Calls("Query") {
			if call.Err == nil && slices.Contains(call.Tables, "checkpoint") {
				pages++
			}
		}
		assert.InDelta(t, 5, pages, 1, "of 1 MB")
	})
}

func TestOneAggregateIsUnparkedAtTheCostOfOne(t *testing.T) {
	t.Parallel()
	const aggregates = 2_000
	db, j := withParked(t, journal.Classic, aggregates)
	_, messages := subscribe(t, quick(j))
	write(t, j, "healthy", 0, 1)
	receiveAll(t, messages, 1)
	recording := db.Record()
	defer recording.Stop()

	id := aggregate.ID{Type: topic, Value: "parked7"}
	require.NoError(t, groups.New(j).Unpark(t.Context(), "group", id))
	assert.Equal(t, expect(id.Value, 1, 1), receiveAll(t, messages, 1))

	_, units := recording.Units()
	t.Logf("%d requests, %.0f write units", len(recording.Calls()), units)
	assert.Less(t, len(recording.Calls()), aggregates/10)
	assert.Less(t, units, float64(aggregates)/40)
}
