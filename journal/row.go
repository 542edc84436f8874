package journal

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// eventRow is an event's item with its attributes at hand. Those of another type than they should have, and those of others,
// are in other.
type eventRow struct {
	partition, sort, aggregate, number, occurredAt string
	eventID, eventType, commitID, encoding         string
	payload                                        types.AttributeValueMemberB
	hasPayload                                     bool
	metadata                                       *types.AttributeValueMemberM
	other                                          item
}

// item is the row as the SDK would have read it.
func (e *eventRows) item(r *eventRow) item {
	if r.partition == "" {
		return r.other // read by another client, or nothing that recordOf accepts
	}
	it := make(item, 12)
	for name, value := range map[string]string{
		e.attributes.PartitionKey: r.partition, e.attributes.SortKey: r.sort, e.attributes.AggregateID: r.aggregate,
		attrEventID: r.eventID, attrEventType: r.eventType, attrCommitID: r.commitID, attrEncoding: r.encoding,
	} {
		if value != "" {
			it[name] = stringValue(value)
		}
	}
	for name, value := range map[string]string{e.attributes.SequenceNumber: r.number, e.attributes.OccurredAt: r.occurredAt} {
		if value != "" {
			it[name] = &types.AttributeValueMemberN{Value: value}
		}
	}
	if r.hasPayload {
		it[e.attributes.Payload] = &r.payload
	}
	if r.metadata != nil {
		it[attrMetadata] = r.metadata
	}
	for name, value := range r.other {
		it[name] = value
	}
	return it
}

// dropPayload makes the payload empty where it was not asked for, as a record without one is corrupt.
func (e *eventRows) dropPayload(r *eventRow) {
	r.hasPayload, r.payload.Value = true, []byte{}
	if r.other != nil {
		r.other[e.attributes.Payload] = &r.payload
	}
}

// recordOfRow is recordOf, faster for a row that is as this package writes them. What is wrong with the others is for
// recordOf to say.
func (j *engine) recordOfRow(e *eventRows, r *eventRow) (*Record, error) {
	if r.eventID != "" && r.hasPayload {
		if record, ok := r.record(); ok {
			return record, nil
		}
	}
	return j.recordOf(e.item(r))
}

func (r *eventRow) record() (*Record, bool) {
	aggregateType, ok := typeOfShardKey(r.partition)
	if !ok || r.other != nil {
		return nil, false
	}
	value, ok := strings.CutPrefix(r.aggregate, aggregateType)
	if !ok || len(value) < 2 || value[0] != '-' || r.number == "" || r.number[0] == '0' {
		return nil, false
	}
	// The sort key is "{aggregate}-{number}".
	if n := len(r.aggregate); len(r.sort) != n+1+len(r.number) || r.sort[:n] != r.aggregate || r.sort[n] != '-' || r.sort[n+1:] != r.number {
		return nil, false
	}
	number, err := strconv.ParseUint(r.number, 10, 64)
	if err != nil {
		return nil, false
	}
	millis, err := strconv.ParseInt(r.occurredAt, 10, 64)
	if err != nil {
		return nil, false
	}
	var metadata aggregate.Metadata
	if r.metadata != nil {
		if metadata, _, ok = metadataOf(r.metadata); !ok {
			return nil, false
		}
	}
	return &Record{
		Metadata: metadata, Aggregate: aggregate.ID{Type: aggregateType, Value: value[1:]}, Number: number,
		EventID: r.eventID, EventType: r.eventType, Payload: r.payload.Value, Encoding: r.encoding,
		OccurredAt: time.UnixMilli(millis).UTC(), CommitID: r.commitID,
	}, true
}
