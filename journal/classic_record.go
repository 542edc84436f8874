package journal

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Attributes that Millrace adds to journal items. Other members of the event-store-adapter family
// ignore them.
const (
	attrEventID   = "event_id"
	attrEventType = "event_type"
)

func (l *classic) itemOf(r *Record) item {
	a := l.config.Attributes
	it := l.key(r.Aggregate, r.Number)
	it[a.AggregateID] = stringValue(r.Aggregate.String())
	it[a.SequenceNumber] = numberValue(r.Number)
	it[a.Payload] = binaryValue(r.Payload)
	it[a.OccurredAt] = numberValue(l.config.storedTime(r.OccurredAt.UnixMilli()))
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

// recordOf decodes an event. It leaves the payload as it is stored.
func (l *classic) recordOf(it item) (*Record, error) {
	a := l.config.Attributes
	r := &Record{}
	id, ok := l.aggregateOf(it)
	corrupt := func(reason string) (*Record, error) {
		partition, sort := l.keysOf(it)
		err := &CorruptItemError{Table: l.config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: reason}
		if tooLong(id) != "" {
			err.Remedy = shorten
		}
		if r.Number > 0 {
			err.Aggregate, err.Number = r.Aggregate, r.Number
		}
		return nil, err
	}
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
	if _, sort := l.keysOf(it); sort != storage.SortKey(id, number) {
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
	r.OccurredAt = time.UnixMilli(l.config.millisOf(stored)).UTC()
	r.WrittenAt = r.OccurredAt
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

// derivedEventID separates the type by a character that no type contains. The sort key alone is
// ambiguous: it is the same for "user" + "account-x" and "user-account" + "x".
func derivedEventID(id aggregate.ID, number uint64) string {
	return uuid.NewSHA1(eventIDs, []byte(id.Type+"\x00"+storage.SortKey(id, number))).String()
}

// eventSize returns the same as itemSize for the event's item with the longest shard, number and
// commit id, but does not build the item.
func (l *classic) eventSize(id aggregate.ID, e storage.Event, overhead int) int {
	const (
		shard    = len("-65535") // the longest is maxShards-1
		number   = len("-18446744073709551615")
		numeric  = 21 // the most that DynamoDB counts for a number
		commitID = 36 // the most that DynamoDB allows for a ClientRequestToken
	)
	a := l.config.Attributes
	size := len(a.PartitionKey) + len(a.SortKey) + len(a.AggregateID) + len(a.SequenceNumber) + len(a.Payload) + len(a.OccurredAt) +
		len(attrCommitID) + commitID +
		len(id.Type) + shard +
		2*(len(id.Type)+len("-")+len(id.Value)) + number +
		numeric + numeric +
		len(e.Payload) + overhead
	if e.Encoding != "" {
		size += len(attrEncoding) + len(e.Encoding)
	}
	if e.ID != "" {
		size += len(attrEventID) + len(e.ID)
	}
	if e.Type != "" {
		size += len(attrEventType) + len(e.Type)
	}
	return size + metadata.Size(e.Metadata)
}
