package journal

import (
	"bytes"
	"maps"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Attributes of ours on journal items, which other members of the
// event-store-adapter family ignore.
const (
	attrEventID   = "event_id"
	attrEventType = "event_type"
	attrCommitID  = "commit_id"
)

// Record is one stored event.
type Record struct {
	// Aggregate and Number, from 1, say where in the store the event is.
	Aggregate aggregate.ID
	Number    uint64

	// EventID is the id that the writer set. If there is none, it is derived: from Aggregate and
	// Number in the layout [Classic], as on events of a foreign writer, and from the id of its
	// commit and Number in the layout [Packed]. So it never changes and no other event has it.
	EventID string
	// EventType is empty on events of a foreign writer, and where the writer set none.
	EventType string
	Payload   []byte
	Metadata  aggregate.Metadata
	// Encoding names what was applied to the payload, such as "gzip,aes-gcm"; see [Journal.Raw]. It
	// is empty on a record that has been decoded.
	Encoding string
	// OccurredAt has a precision of milliseconds, in UTC.
	OccurredAt time.Time
	// WrittenAt is when the event was written to this journal, and the tail is in its order. It
	// equals OccurredAt, except in a layout that stores both: there an imported event has the
	// OccurredAt of its origin.
	WrittenAt time.Time
	// CommitID is empty on events of a foreign writer.
	CommitID string
}

// Size returns about how many bytes the record takes in memory, which is close to what it takes in
// the table.
func (r *Record) Size() int {
	size := 200 + len(r.EventID) + len(r.EventType) + len(r.Payload) + len(r.CommitID) + 3*len(r.Aggregate.Value)
	for k, v := range r.Metadata {
		size += len(k) + len(v)
	}
	return size
}

// Equal reports whether two records are the same event with the same values. It compares OccurredAt
// by its milliseconds. It ignores WrittenAt, since that differs between the copies of an event in
// two journals.
func (r *Record) Equal(other *Record) bool {
	return r.Aggregate == other.Aggregate && r.Number == other.Number &&
		r.EventID == other.EventID && r.EventType == other.EventType && r.CommitID == other.CommitID &&
		r.Encoding == other.Encoding &&
		r.OccurredAt.UnixMilli() == other.OccurredAt.UnixMilli() &&
		bytes.Equal(r.Payload, other.Payload) && maps.Equal(r.Metadata, other.Metadata)
}
