package journaltype

import (
	"bytes"
	"maps"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Record is one stored event.
type Record struct {
	// Aggregate and Number, from 1, identify the event.
	Aggregate aggregate.ID
	Number    uint64 // the sequence number, from 1

	// EventID is the id that the writer set. If the writer set none, the id is derived. In the
	// layout [Classic], which includes events of other programs, it is derived from Aggregate and
	// Number. In [Packed] it is derived from the commit id and Number. So it never changes, and no
	// other event has it.
	EventID string
	// EventType is empty if the writer set none, and on events of other programs.
	EventType string
	Payload   []byte             // the payload, decoded by the encodings of the journal
	Metadata  aggregate.Metadata // the metadata of the event
	// Encoding names the applied encodings, such as "gzip,aes-gcm"; see Journal.Raw. It is empty
	// on a decoded record.
	Encoding string
	// OccurredAt is when the event occurred, in UTC, with a precision of milliseconds.
	OccurredAt time.Time
	// WrittenAt is when the event was written to this journal. The tail has this order. It equals
	// OccurredAt in the layout Classic. In Packed it differs for imported events, which keep the
	// OccurredAt of their origin.
	WrittenAt time.Time
	// CommitID is empty on events of other programs.
	CommitID string
}

// Size returns the approximate number of bytes of the record in memory, which is close to its size
// in the table.
func (r *Record) Size() int {
	size := 200 + len(r.EventID) + len(r.EventType) + len(r.Payload) + len(r.CommitID) + 3*len(r.Aggregate.Value)
	for k, v := range r.Metadata {
		size += len(k) + len(v)
	}
	return size
}

// Equal reports whether two records are the same event with the same values. It compares OccurredAt
// in milliseconds. It ignores WrittenAt, which differs between the copies of an event in two
// journals.
func (r *Record) Equal(other *Record) bool {
	return r.Aggregate == other.Aggregate && r.Number == other.Number &&
		r.EventID == other.EventID && r.EventType == other.EventType && r.CommitID == other.CommitID &&
		r.Encoding == other.Encoding &&
		r.OccurredAt.UnixMilli() == other.OccurredAt.UnixMilli() &&
		bytes.Equal(r.Payload, other.Payload) && maps.Equal(r.Metadata, other.Metadata)
}
