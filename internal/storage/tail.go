package storage

import (
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// ShardKey returns the partition key of a logical shard.
func ShardKey(aggregateType string, shard int) string {
	return aggregateType + "-" + strconv.Itoa(shard)
}

// SortKey returns the sort key of an event, or of a head if number is 0.
func SortKey(id aggregate.ID, number uint64) string {
	return id.Type + "-" + id.Value + "-" + strconv.FormatUint(number, 10)
}

// Cursor is a place in the tail of one logical shard: just after an event, or before all events of
// a millisecond if SortKey is empty. The zero value is the beginning.
type Cursor struct {
	OccurredAt int64  // when the event was written, in milliseconds since 1970
	SortKey    string // of the event before the place
	// Exact is the stored time of that event if it is not a whole number of milliseconds, which is
	// possible for other programs.
	Exact string
}

// CursorAt returns the place before all events of the millisecond of t.
func CursorAt(t time.Time) Cursor { return Cursor{OccurredAt: t.UnixMilli()} }

// TailQuery selects a page of a shard's tail.
type TailQuery struct {
	AggregateType string
	Shard         int
	After         Cursor
	// Until leaves out events that were written later. Zero means no limit.
	Until time.Time
	// NumbersOnly requests only Aggregate, Number and WrittenAt, which makes the reply smaller but
	// not cheaper. Other fields of the records may be empty or missing.
	NumbersOnly bool
	// Needs, if set, reports whether the reader needs the content of the events first to last. The
	// layout asks for items whose events the index lacks, which cost a read each.
	Needs func(id aggregate.ID, first, last uint64) bool
	// Part selects one of the partitions of the shard in the tail, from 1; 0 selects all. The pages
	// of one partition are in the order of time.
	Part int
	// Limit ends the page after that many items, including items that cannot be decoded. 0 means as
	// many as fit into 1 MB.
	Limit int
}

// HeadsOfShard selects the heads of one logical shard.
type HeadsOfShard struct {
	AggregateType string
	Shard         int
	// After is the aggregate of the last head that was yielded. Zero begins with the first.
	After aggregate.ID
	// Consistent requests strongly consistent reads, which cost twice as much. The packed layout
	// lists the aggregates from an index, so it first waits for 2 seconds.
	Consistent bool
}

// TailPage is a page of a shard's tail, in the order in which the events were written.
type TailPage struct {
	// Records have payloads in stored form. The journal's method Decode decodes a record.
	Records []*journaltype.Record
	// Unread has the numbers and times of events that were not read, because of TailQuery.Needs. It
	// is in the same order.
	Unread []*journaltype.Record
	// Corrupt lists the items that cannot be decoded as records.
	Corrupt []*journaltype.CorruptItemError
	// Next is the place after the last item of the page.
	Next Cursor
	// More means that there is another page now.
	More bool
}
