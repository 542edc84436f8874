package tail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// world is a topic that the test polls. It counts how often each event was passed.
type world struct {
	t      *testing.T
	db     *dynamotest.DB
	opened *journal.Journal
	j      *engine.Engine
	topic  *topic
	passed map[place]int
	known  int // the largest number of events in delivered
	count  uint64
}

func newWorld(t *testing.T, layout journal.Layout, shards int) *world {
	t.Helper()
	db := dynamotest.New(t)
	db.Clock().Freeze()
	j := testjournal.New(t, db.Client(), journal.Config{Shards: shards, Layout: layout, Now: db.Clock().Now})
	return &world{t: t, db: db, opened: j, j: j.Internal(), passed: map[place]int{}}
}

func (w *world) follow() {
	c := Config{Journal: w.opened, Topic: "account", Follow: true, Now: w.db.Clock().Now}
	c.setDefaults()
	w.topic = newTopic(c, func(events []*journal.Record) error {
		for _, r := range events {
			w.passed[placeOf(r)]++
			w.known = max(w.known, len(w.topic.delivered))
		}
		return nil
	})
}

// write writes an event in each second, to one aggregate after another.
func (w *world) write(seconds int) {
	w.t.Helper()
	for range seconds {
		w.db.Clock().Advance(time.Second)
		_, err := w.j.Append(w.t.Context(), storage.Commit{
			Aggregate: aggregate.ID{Type: "account", Value: fmt.Sprint(w.count % 10)}, Expected: w.count / 10,
			Events: []storage.Event{{Type: "counted", Payload: []byte("1")}},
		})
		require.NoError(w.t, err)
		w.count++
	}
}

func (w *world) requireAllOnce() {
	w.t.Helper()
	require.Len(w.t, w.passed, int(w.count)) //nolint:gosec // it is small
	for p, times := range w.passed {
		require.Equal(w.t, 1, times, p)
	}
}

func (w *world) poll() {
	w.t.Helper()
	require.NoError(w.t, w.topic.poll(w.t.Context()))
}

func eachLayout(t *testing.T, shards int, test func(w *world)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		test(newWorld(t, layout, shards))
	})
}

// ofShard2 matches reads of one of the shards.
func ofShard2(_ string, input any) bool {
	query, ok := input.(*dynamodb.QueryInput)
	if !ok {
		return false
	}
	for _, v := range query.ExpressionAttributeValues {
		if text, ok := v.(*types.AttributeValueMemberS); ok && strings.HasSuffix(text.Value, "2") {
			return true
		}
	}
	return false
}

// The events of two trailing delays of 10 seconds, and of half a delay until they are pruned.
const mostKnown = 30

func TestOnlyTheEventsOfTheLastSecondsAreKept(t *testing.T) {
	t.Parallel()
	eachLayout(t, 4, func(w *world) {
		w.write(600) // before
		w.follow()
		w.poll()
		for range 60 {
			w.write(1)
			w.poll()
		}
		w.requireAllOnce()
		assert.LessOrEqual(w.t, w.known, mostKnown)
		assert.Positive(w.t, w.known)
	})
}

// A read that fails can cancel the reads of the other three shards. Each of these may be read by a
// later poll then, at most twenty seconds further.
func TestAnOutageKeepsNoMoreEventsThanTheLastSeconds(t *testing.T) {
	t.Parallel()
	const beyond = 3 * 20
	eachLayout(t, 4, func(w *world) {
		w.write(20)
		w.follow()
		w.poll()
		w.write(5)
		w.poll()
		for _, some := range []dynamotest.When{dynamotest.On("Query"), dynamotest.Matching(ofShard2)} {
			outage := w.db.Inject(dynamotest.Throttle(), some)
			for range 60 {
				require.ErrorIs(w.t, w.topic.poll(w.t.Context()), journal.ErrThrottled)
				outage.Remove()
				w.write(10)
				outage = w.db.Inject(dynamotest.Throttle(), some)
			}
			outage.Remove()
			w.poll()
			w.requireAllOnce()
			assert.LessOrEqual(w.t, w.known, 2*mostKnown+beyond, "of 600 events")
		}
		w.write(30)
		w.poll()
		w.poll()
		w.requireAllOnce()
	})
}

func TestALateEventIsPassedOnceAlsoAfterAnOutage(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(w *world) {
		w.follow()
		w.poll()
		w.write(5)
		w.poll()
		lag := w.db.Inject(dynamotest.DelayIndex(5*time.Second, 5*time.Second))
		w.write(1)
		lag.Remove()
		w.write(1)
		w.poll()
		require.Len(w.t, w.passed, 6, "one is late")
		w.write(600)
		for range 3 {
			w.poll()
			w.write(4)
		}
		w.poll()
		w.requireAllOnce()
	})
}
