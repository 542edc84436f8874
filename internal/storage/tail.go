package storage

import (
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// ShardKey is the partition key of a logical shard.
func ShardKey(aggregateType string, shard int) string {
	return aggregateType + "-" + strconv.Itoa(shard)
}

// SortKey is the sort key of an event, and that of a head for number 0.
func SortKey(id aggregate.ID, number uint64) string {
	return id.Type + "-" + id.Value + "-" + strconv.FormatUint(number, 10)
}

// Cursor is a place in the tail of one logical shard: just after an event, or before all events of
// a millisecond where SortKey is empty. The zero value is the beginning.
type Cursor struct {
	OccurredAt int64  // when that was written, in milliseconds since 1970
	SortKey    string // of the event just before
	// Exact is the time of that event as it is stored, where that is no whole number of
	// milliseconds, which foreign writers may leave.
	Exact string
}

// CursorAt is before all events of the time's millisecond.
func CursorAt(t time.Time) Cursor { return Cursor{OccurredAt: t.UnixMilli()} }

// TailQuery asks for a page of a shard's tail.
type TailQuery struct {
	AggregateType string
	Shard         int
	After         Cursor
	// Until leaves out what was written later. Zero for no limit.
	Until time.Time
	// NumbersOnly asks for Aggregate, Number and WrittenAt alone, which makes the reply smaller but
	// not cheaper. Other fields of the records may be empty or missing.
	NumbersOnly bool
	// Part asks for one of the partitions that the shard has in the tail, from 1 on. 0 for all. The
	// pages of one are in the order of time.
	Part int
	// Limit ends the page after so many items, also those that cannot be read. 0 for as many as 1
	// MB has.
	Limit int
}

// HeadsOfShard asks for the heads of one logical shard.
type HeadsOfShard struct {
	AggregateType string
	Shard         int
	// After is the aggregate of the head after which to continue. Zero for the beginning.
	After aggregate.ID
	// Consistent asks for strongly consistent reads, which cost twice as much. The packed layout
	// lists the aggregates from an index, so it waits for 2 seconds first.
	Consistent bool
}

// TailPage is a page of a shard's tail, in the order in which the events were written.
type TailPage[Record, Corrupt any] struct {
	// Records have payloads as they are stored; the journal's method Decode decodes those that are
	// needed.
	Records []*Record
	// Corrupt are the items that cannot be read as records.
	Corrupt []*Corrupt
	// Next is after the last item of the page.
	Next Cursor
	// More: there is another page now.
	More bool
}
