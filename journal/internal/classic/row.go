package classic

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// readRecord is an event, or the reason why it cannot be decoded.
type readRecord struct {
	record  *journaltype.Record
	corrupt *journaltype.CorruptItemError
}

// readRow decodes a row of the tail.
func (l *layout) readRow(row rows.Row, numbersOnly bool) readRecord {
	if record, ok := l.ownRecord(row, numbersOnly); ok {
		return readRecord{record: record}
	}
	it := row.Item()
	if numbersOnly {
		// recordOf reports a missing payload as corrupt
		it[l.Config.Attributes.Payload] = table.BinaryValue(nil)
	}
	record, err := l.recordOf(it)
	if err != nil {
		return readRecord{corrupt: engine.AsCorrupt(err)}
	}
	if numbersOnly {
		// A derived id may be wrong: the row was read without its event id.
		record.EventID = ""
	}
	return readRecord{record: record}
}

// ownRecord does the same as recordOf, but faster, for a row that this package wrote. It returns
// false for any other row; the caller then uses recordOf.
func (l *layout) ownRecord(row rows.Row, numbersOnly bool) (*journaltype.Record, bool) {
	a := &l.Config.Attributes
	r := &journaltype.Record{Payload: []byte{}}
	var partition, sort, id, sequence, occurredAt string
	hasPayload := numbersOnly
	for i := range row {
		v := &row[i]
		var text *string
		switch v.Name {
		case a.PartitionKey:
			text = &partition
		case a.SortKey:
			text = &sort
		case a.AggregateID:
			text = &id
		case attrEventID:
			text = &r.EventID
		case attrEventType:
			text = &r.EventType
		case engine.AttrCommitID:
			text = &r.CommitID
		case engine.AttrEncoding:
			text = &r.Encoding
		case a.SequenceNumber:
			text = &sequence
		case a.OccurredAt:
			text = &occurredAt
		case a.Payload:
			r.Payload, hasPayload = v.Binary, v.Kind == rows.Binary
			continue
		case metadata.Attribute:
			m, ok := v.Other.(*types.AttributeValueMemberM)
			if !ok {
				return nil, false
			}
			if r.Metadata, _, ok = metadata.OfMap(m); !ok {
				return nil, false
			}
			continue
		default:
			return nil, false
		}
		kind := rows.Text
		if text == &sequence || text == &occurredAt {
			kind = rows.Number
		}
		if *text = v.Text; v.Kind != kind || v.Text == "" {
			return nil, false
		}
	}
	if !hasPayload || r.EventID == "" && !numbersOnly {
		return nil, false
	}
	var ok bool
	if r.Aggregate, r.Number, ok = ownKeys(partition, sort, id, sequence); !ok {
		return nil, false
	}
	stored, err := strconv.ParseInt(occurredAt, 10, 64)
	r.OccurredAt = time.UnixMilli(l.Config.MillisOf(stored)).UTC()
	r.WrittenAt = r.OccurredAt
	return r, err == nil
}

// ownKeys parses keys that are consistent: the partition key "{type}-{shard}" and the sort key
// "{aggregate}-{number}".
func ownKeys(partition, sort, id, sequence string) (of aggregate.ID, number uint64, ok bool) {
	if of.Type, ok = typeOfShardKey(partition); !ok {
		return of, 0, false
	}
	value, ok := strings.CutPrefix(id, of.Type)
	if !ok || len(value) < 2 || value[0] != '-' || sequence == "" || sequence[0] == '0' {
		return of, 0, false
	}
	if n := len(id); len(sort) != n+1+len(sequence) || sort[:n] != id || sort[n] != '-' || sort[n+1:] != sequence {
		return of, 0, false
	}
	of.Value = value[1:]
	number, err := strconv.ParseUint(sequence, 10, 64)
	return of, number, err == nil && tooLong(of) == ""
}
