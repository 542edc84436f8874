package eventlog

import (
	"time"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Commit and the other data of the methods of [Log] are declared and described in package storage.
type Commit = storage.Commit[journal.Snapshot]

// More data of the methods of [Log].
type (
	Event       = storage.Event
	Redundancy  = storage.Redundancy
	Receipt     = storage.Receipt
	Command     = storage.Command
	Cursor      = storage.Cursor
	TailQuery   = storage.TailQuery
	TailPage    = storage.TailPage[journal.Record, journal.CorruptItemError]
	Restoration = storage.Restoration[journal.Head, journal.Record]
	Inspection  = storage.Inspection[journal.Head, journal.CorruptItemError]
)

// Limits of one commit; see package storage.
const (
	MaxItemBytes   = storage.MaxItemBytes
	MaxCommitBytes = storage.MaxCommitBytes
	MaxActions     = storage.MaxActions
	MaxEvents      = storage.MaxEvents
	MaxEventsBytes = storage.MaxEventsBytes
)

// Reasons why a snapshot was left out of a commit; see [Receipt].
var (
	ErrNoRoom    = storage.ErrNoRoom
	ErrOldSchema = storage.ErrOldSchema
)

// ShardKey is the partition key of a logical shard.
func ShardKey(aggregateType string, shard int) string { return storage.ShardKey(aggregateType, shard) }

// CursorAt is before all events of the time's millisecond.
func CursorAt(t time.Time) Cursor { return storage.CursorAt(t) }

// CursorAfter is just after an event.
func CursorAfter(r *journal.Record) Cursor {
	return storage.CursorAfter(r.Aggregate, r.Number, r.OccurredAt)
}
