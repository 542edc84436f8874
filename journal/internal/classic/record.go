package classic

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Attributes that Millrace adds to journal items. Other members of the event-store-adapter family
// ignore them.
const (
	attrEventID   = "event_id"
	attrEventType = "event_type"
)

func (l *layout) itemOf(r *journaltype.Record) table.Item {
	a := l.Config.Attributes
	it := l.key(r.Aggregate, r.Number)
	it[a.AggregateID] = table.StringValue(r.Aggregate.String())
	it[a.SequenceNumber] = table.NumberValue(r.Number)
	it[a.Payload] = table.BinaryValue(r.Payload)
	it[a.OccurredAt] = table.NumberValue(l.Config.StoredTime(r.OccurredAt.UnixMilli()))
	it[engine.AttrCommitID] = table.StringValue(r.CommitID)
	if r.EventID != "" {
		it[attrEventID] = table.StringValue(r.EventID)
	}
	if r.EventType != "" {
		it[attrEventType] = table.StringValue(r.EventType)
	}
	metadata.Put(it, r.Metadata)
	engine.SetEncoding(it, r.Encoding)
	return it
}

// recordOf decodes an event. It leaves the payload as it is stored.
func (l *layout) recordOf(it table.Item) (*journaltype.Record, error) {
	a := l.Config.Attributes
	r := &journaltype.Record{}
	id, ok := l.aggregateOf(it)
	corrupt := func(reason string) (*journaltype.Record, error) {
		partition, sort := l.KeysOf(it)
		err := &journaltype.CorruptItemError{Table: l.Config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: reason}
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
	number, ok := table.UintOf(it[a.SequenceNumber])
	if !ok || number == 0 {
		return corrupt("has no sequence number from 1 on in " + a.SequenceNumber)
	}
	if _, sort := l.KeysOf(it); sort != storage.SortKey(id, number) {
		return corrupt("has a sort key that does not fit its aggregate and sequence number " + strconv.FormatUint(number, 10))
	}
	r.Aggregate, r.Number = id, number
	if r.Payload, ok = table.BytesOf(it[a.Payload]); !ok {
		return corrupt("has no binary or text in " + a.Payload)
	}
	stored, ok := table.IntOf(it[a.OccurredAt])
	if !ok {
		return corrupt("has no whole number in " + a.OccurredAt)
	}
	r.OccurredAt = time.UnixMilli(l.Config.MillisOf(stored)).UTC()
	r.WrittenAt = r.OccurredAt
	if r.Encoding, ok = engine.EncodingOf(it); !ok {
		return corrupt("has no text in " + engine.AttrEncoding)
	}
	r.EventType, _ = table.StringOf(it[attrEventType])
	r.CommitID, _ = table.StringOf(it[engine.AttrCommitID])
	if r.EventID, _ = table.StringOf(it[attrEventID]); r.EventID == "" {
		r.EventID = derivedEventID(r.Aggregate, r.Number)
	}
	var wrong string
	if r.Metadata, wrong, ok = metadata.Of(it); !ok {
		return corrupt("has metadata " + strconv.Quote(wrong) + " that is not text")
	}
	return r, nil
}

// derivedEventID separates the type by a character that no type contains. The sort key alone is
// ambiguous: it is the same for "user" + "account-x" and "user-account" + "x".
func derivedEventID(id aggregate.ID, number uint64) string {
	return uuid.NewSHA1(engine.EventIDs, []byte(id.Type+"\x00"+storage.SortKey(id, number))).String()
}

// EventSize returns the same as ItemSize for the event's item with the longest shard, number and
// commit id, but does not build the item.
func (l *layout) EventSize(id aggregate.ID, e storage.Event, overhead int) int {
	const (
		shard    = len("-65535") // the longest is MaxShards-1
		number   = len("-18446744073709551615")
		numeric  = 21 // the most that DynamoDB counts for a number
		commitID = 36 // the most that DynamoDB allows for a ClientRequestToken
	)
	a := l.Config.Attributes
	size := len(a.PartitionKey) + len(a.SortKey) + len(a.AggregateID) + len(a.SequenceNumber) + len(a.Payload) + len(a.OccurredAt) +
		len(engine.AttrCommitID) + commitID +
		len(id.Type) + shard +
		2*(len(id.Type)+len("-")+len(id.Value)) + number +
		numeric + numeric +
		len(e.Payload) + overhead
	if e.Encoding != "" {
		size += len(engine.AttrEncoding) + len(e.Encoding)
	}
	if e.ID != "" {
		size += len(attrEventID) + len(e.ID)
	}
	if e.Type != "" {
		size += len(attrEventType) + len(e.Type)
	}
	return size + metadata.Size(e.Metadata)
}
