package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// reading returns a source whose reads are all at one place, one of them trailing by 10 seconds.
func reading(at storage.Cursor) *Source {
	s := &Source{trailing: []trailingRead{{delay: 10 * time.Second}}}
	s.setCursors(at)
	return s
}

func testRecord(id string, number uint64, at int64) *journal.Record {
	return &journal.Record{Aggregate: aggregate.ID{Type: "account", Value: id}, Number: number, WrittenAt: time.UnixMilli(at)}
}

func pageOf(records ...*journal.Record) storage.TailPage {
	last := records[len(records)-1]
	return storage.TailPage{Records: records, Next: storage.Cursor{OccurredAt: last.WrittenAt.UnixMilli(), SortKey: last.Aggregate.Value}}
}

func TestATrailingReadGoesAlongWithHistory(t *testing.T) {
	t.Parallel()
	s := reading(storage.Cursor{})
	page := pageOf(testRecord("x", 1, 1_000), testRecord("y", 1, 2_000))
	s.advance(page, time.UnixMilli(20_000))
	assert.Equal(t, page.Next, s.trail())
	assert.Equal(t, page.Next, s.live)
}

func TestATrailingReadStopsAtItsHorizon(t *testing.T) {
	t.Parallel()
	s := reading(storage.Cursor{})
	page := pageOf(testRecord("x", 1, 1_000), testRecord("y", 1, 12_000))
	s.advance(page, time.UnixMilli(20_700))
	assert.Equal(t, storage.Cursor{OccurredAt: 10_700}, s.trail())
	assert.Equal(t, page.Next, s.live)

	assert.True(t, s.trailing[0].next.After(time.Now()), "it would read one millisecond")

	s.advance(pageOf(testRecord("z", 1, 19_000)), time.UnixMilli(24_000))
	assert.Equal(t, storage.Cursor{OccurredAt: 10_700}, s.trail(), "what it has not read itself")
}

// An imported event has a much earlier date.
func TestAHorizonIsComparedWithWhenEventsWereWritten(t *testing.T) {
	t.Parallel()
	s := reading(storage.Cursor{})
	imported := testRecord("x", 1, 19_000)
	imported.OccurredAt = time.UnixMilli(1_000)
	s.advance(pageOf(imported), time.UnixMilli(20_000))
	assert.Equal(t, storage.Cursor{OccurredAt: 10_000}, s.trail())
}

func TestATrailingReadNeverGoesBack(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]storage.Cursor{
		"beyond the horizon": {OccurredAt: 15_000, SortKey: "x"},
		"at the horizon":     {OccurredAt: 10_000, SortKey: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reading(at)
			s.advance(pageOf(testRecord("x", 1, 16_000)), time.UnixMilli(20_000))
			assert.Equal(t, at, s.trail())
		})
	}
}
