package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestTheRateOfATopicCountsTheEventsOfTheLastMinute(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		db.Clock().Freeze()
		j := testjournal.New(t, db.Client(), journal.Config{Layout: layout, Shards: 1, Now: db.Clock().Now})
		for n := range 3 { // 18 events, within a second
			var events []storage.Event
			for i := range 6 {
				events = append(events, storage.Event{ID: fmt.Sprint(n, i), Type: "counted", Payload: []byte("1")})
			}
			testjournal.Append(t, j, storage.Commit{Aggregate: aggregate.ID{Type: "cart", Value: fmt.Sprint(n)}, Events: events})
		}
		if layout == journal.Packed { // 30 more events; still less than 20 entries
			var events []storage.Event
			for i := range 30 {
				events = append(events, storage.Event{ID: fmt.Sprint("more", i), Type: "counted", Payload: []byte("1")})
			}
			testjournal.Append(t, j, storage.Commit{Aggregate: aggregate.ID{Type: "cart", Value: "more"}, Events: events})
		}
		want := map[journal.Layout]float64{journal.Classic: 18, journal.Packed: 48}[layout] / 60
		db.Clock().Advance(2 * time.Second)
		rate := read[struct {
			EventsPerSecond float64 `json:"events_per_second"`
		}](t, newConsole(t, console.Config{Journal: j}), "topic?name=cart").EventsPerSecond
		assert.InDelta(t, want, rate, 0.001)
	})
}
