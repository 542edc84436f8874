package journal

import (
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/rows"
)

// rowNames are the names of the attributes that rows have fields for.
func (c *Config) rowNames() *rows.Names {
	a := c.Attributes
	return &rows.Names{
		Partition: a.PartitionKey, Sort: a.SortKey, Aggregate: a.AggregateID, Number: a.SequenceNumber, OccurredAt: a.OccurredAt,
		EventID: attrEventID, EventType: attrEventType, CommitID: attrCommitID, Encoding: attrEncoding,
		Payload: a.Payload, Metadata: metadata.Attribute,
	}
}

// dropPayload makes the payload empty where it was not asked for, as a record without one is
// corrupt.
func (l *classic) dropPayload(r *rows.Row) {
	r.HasPayload, r.Payload = true, []byte{}
	if r.Other != nil {
		r.Other[l.rowNames.Payload] = binaryValue(nil)
	}
}

// recordOfRow is recordOf, faster for a row that is as this package writes them. What is wrong with
// the others is for recordOf to say.
func (l *classic) recordOfRow(r *rows.Row) (*Record, error) {
	if r.EventID != "" && r.HasPayload {
		if record, ok := l.recordOfOwn(r); ok {
			return record, nil
		}
	}
	return l.recordOf(l.rowNames.Item(r))
}

// recordOfOwn reads a row that this package wrote. It returns false for any other row.
func (l *classic) recordOfOwn(r *rows.Row) (*Record, bool) {
	aggregateType, ok := typeOfShardKey(r.Partition)
	if !ok || r.Other != nil {
		return nil, false
	}
	value, ok := strings.CutPrefix(r.Aggregate, aggregateType)
	if !ok || len(value) < 2 || value[0] != '-' || r.Number == "" || r.Number[0] == '0' {
		return nil, false
	}
	// The sort key is "{aggregate}-{number}".
	if n := len(r.Aggregate); len(r.Sort) != n+1+len(r.Number) || r.Sort[:n] != r.Aggregate || r.Sort[n] != '-' || r.Sort[n+1:] != r.Number {
		return nil, false
	}
	number, err := strconv.ParseUint(r.Number, 10, 64)
	if err != nil {
		return nil, false
	}
	stored, err := strconv.ParseInt(r.OccurredAt, 10, 64)
	if err != nil {
		return nil, false
	}
	var texts aggregate.Metadata
	if r.Metadata != nil {
		if texts, _, ok = metadata.OfMap(r.Metadata); !ok {
			return nil, false
		}
	}
	at := time.UnixMilli(l.config.millisOf(stored)).UTC()
	return &Record{
		Metadata: texts, Aggregate: aggregate.ID{Type: aggregateType, Value: value[1:]}, Number: number,
		EventID: r.EventID, EventType: r.EventType, Payload: r.Payload, Encoding: r.Encoding,
		OccurredAt: at, WrittenAt: at, CommitID: r.CommitID,
	}, true
}
