package journal

import (
	"bytes"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
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

	// EventID is the id that the writer set. If there is none, as on events of a foreign writer, it
	// is derived from Aggregate and Number, so it never changes and no other event has it.
	EventID string
	// EventType is empty on events of a foreign writer.
	EventType string
	Payload   []byte
	Metadata  aggregate.Metadata
	// Encoding names what was applied to the payload, such as "gzip,aes-gcm"; see [Journal.Raw]. It
	// is empty on a record that has been decoded.
	Encoding string
	// OccurredAt has a precision of milliseconds, in UTC.
	OccurredAt time.Time
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

// Equal reports whether two records have the same values in everything that is stored. Times are
// compared by their milliseconds.
func (r *Record) Equal(other *Record) bool {
	return r.Aggregate == other.Aggregate && r.Number == other.Number &&
		r.EventID == other.EventID && r.EventType == other.EventType && r.CommitID == other.CommitID &&
		r.Encoding == other.Encoding &&
		r.OccurredAt.UnixMilli() == other.OccurredAt.UnixMilli() &&
		bytes.Equal(r.Payload, other.Payload) && maps.Equal(r.Metadata, other.Metadata)
}

func (j *engine) itemOf(r *Record) item {
	a := j.config.Attributes
	it := j.key(r.Aggregate, r.Number)
	it[a.AggregateID] = stringValue(r.Aggregate.String())
	it[a.SequenceNumber] = numberValue(r.Number)
	it[a.Payload] = binaryValue(r.Payload)
	it[a.OccurredAt] = numberValue(j.config.storedTime(r.OccurredAt.UnixMilli()))
	it[attrCommitID] = stringValue(r.CommitID)
	if r.EventID != "" {
		it[attrEventID] = stringValue(r.EventID)
	}
	if r.EventType != "" {
		it[attrEventType] = stringValue(r.EventType)
	}
	metadata.Put(it, r.Metadata)
	setEncoding(it, r.Encoding)
	return it
}

// recordOf leaves the payload as it is stored.
func (j *engine) recordOf(it item) (*Record, error) {
	a := j.config.Attributes
	r := &Record{}
	corrupt := func(reason string) (*Record, error) {
		partition, sort := j.keysOf(it)
		err := &CorruptItemError{Table: j.config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: reason}
		if r.Number > 0 {
			err.Aggregate, err.Number = r.Aggregate, r.Number
		}
		return nil, err
	}
	id, ok := j.aggregateOf(it)
	if !ok {
		return corrupt("has no " + a.AggregateID + " that fits its partition")
	}
	if reason := tooLong(id); reason != "" {
		return corrupt(reason)
	}
	number, ok := uintOf(it[a.SequenceNumber])
	if !ok || number == 0 {
		return corrupt("has no sequence number from 1 on in " + a.SequenceNumber)
	}
	if _, sort := j.keysOf(it); sort != storage.SortKey(id, number) {
		return corrupt("has a sort key that does not fit its aggregate and sequence number " + strconv.FormatUint(number, 10))
	}
	r.Aggregate, r.Number = id, number
	if r.Payload, ok = bytesOf(it[a.Payload]); !ok {
		return corrupt("has no binary or text in " + a.Payload)
	}
	stored, ok := intOf(it[a.OccurredAt])
	if !ok {
		return corrupt("has no whole number in " + a.OccurredAt)
	}
	r.OccurredAt = time.UnixMilli(j.config.millisOf(stored)).UTC()
	if r.Encoding, ok = encodingOf(it); !ok {
		return corrupt("has no text in " + attrEncoding)
	}
	r.EventType, _ = stringOf(it[attrEventType])
	r.CommitID, _ = stringOf(it[attrCommitID])
	if r.EventID, _ = stringOf(it[attrEventID]); r.EventID == "" {
		r.EventID = derivedEventID(r.Aggregate, r.Number)
	}
	var wrong string
	if r.Metadata, wrong, ok = metadata.Of(it); !ok {
		return corrupt("has metadata " + strconv.Quote(wrong) + " that is not text")
	}
	return r, nil
}

// eventIDs is the namespace of derived event ids. It must never change.
var eventIDs = uuid.MustParse("9a4b3f0e-6f5c-5d0e-8b43-6d696c6c7261")

// derivedEventID keeps the type apart from the value by a character that no type has: the sort keys
// of "user" + "account-x" and "user-account" + "x" are the same.
func derivedEventID(id aggregate.ID, number uint64) string {
	return uuid.NewSHA1(eventIDs, []byte(id.Type+"\x00"+storage.SortKey(id, number))).String()
}
