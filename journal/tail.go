package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Cursor is a place in the tail of one logical shard: just after an event, or
// before all events of a millisecond where SortKey is empty. The zero value is the
// beginning.
type Cursor struct {
	OccurredAt int64  // milliseconds since 1970
	SortKey    string // of the event just before
	exact      string // its time as it is stored, where that is no whole number
}

// CursorAt is before all events of the time's millisecond.
func CursorAt(t time.Time) Cursor { return Cursor{OccurredAt: t.UnixMilli()} }

// CursorAfter is just after an event.
func CursorAfter(r *Record) Cursor {
	return Cursor{OccurredAt: r.OccurredAt.UnixMilli(), SortKey: sortKey(r.Aggregate, r.Number)}
}

// TailQuery asks for a page of a shard's tail.
type TailQuery struct {
	AggregateType string
	Shard         int
	After         Cursor
	// Until leaves out what occurred later. Zero for no limit.
	Until time.Time
	// NumbersOnly asks for Aggregate, Number and OccurredAt alone, which makes the
	// reply smaller but not cheaper.
	NumbersOnly bool
	// Limit ends the page after so many items, also those that cannot be read. 0 for as many as 1 MB has.
	Limit int
}

// TailPage is a page of a shard's tail, in the order of the events' time.
type TailPage struct {
	// Records have payloads as they are stored; [Journal.Decode] gives those that are needed.
	Records []*Record
	// Corrupt are the items that cannot be read as records.
	Corrupt []*CorruptItemError
	// Next is after the last item of the page.
	Next Cursor
	// More: there is another page now.
	More bool
}

// Tail reads one page, at most 1 MB, of a logical shard in the order of the
// events' time, from the tail index: half a read unit for each 4 KB, at least half a unit.
//
// The index is eventually consistent and the clocks of writers differ, so an
// event can appear before a place that was already read. What Tail shows is a hint of which
// aggregates have moved; their order and completeness come from the sequence numbers.
func (j *Journal) Tail(ctx context.Context, q TailQuery) (TailPage, error) {
	a := j.config.Attributes
	shard := ShardKey(q.AggregateType, q.Shard)
	from := q.After.OccurredAt
	if q.After == (Cursor{}) {
		from = math.MinInt64 // also what is dated before 1970
	}
	input := &dynamodb.QueryInput{
		TableName:                &j.config.Tables.Journal,
		IndexName:                &j.config.Indexes.JournalTail,
		KeyConditionExpression:   aws.String("#pk = :shard AND #at >= :from"),
		ExpressionAttributeNames: attributeNames("#pk", a.PartitionKey, "#at", a.OccurredAt),
		ExpressionAttributeValues: item{
			":shard": stringValue(shard), ":from": numberValue(from),
		},
	}
	if !q.Until.IsZero() {
		input.KeyConditionExpression = aws.String("#pk = :shard AND #at BETWEEN :from AND :until")
		input.ExpressionAttributeValues[":until"] = numberValue(q.Until.UnixMilli())
		if q.Until.UnixMilli() < from {
			return TailPage{Next: q.After}, nil // DynamoDB refuses an empty range
		}
	}
	if q.NumbersOnly {
		input.ProjectionExpression = aws.String("#pk, #sk, #at, #aid, #n")
		input.ExpressionAttributeNames["#sk"] = a.SortKey
		input.ExpressionAttributeNames["#aid"] = a.AggregateID
		input.ExpressionAttributeNames["#n"] = a.SequenceNumber
	}
	if q.Limit > 0 {
		input.Limit = aws.Int32(int32(min(q.Limit, math.MaxInt32)))
	}
	if q.After.SortKey != "" {
		input.ExclusiveStartKey = item{
			a.PartitionKey: stringValue(shard),
			a.SortKey:      stringValue(q.After.SortKey),
			a.OccurredAt:   numberValue(q.After.OccurredAt),
		}
		if q.After.exact != "" {
			input.ExclusiveStartKey[a.OccurredAt] = &types.AttributeValueMemberN{Value: q.After.exact}
		}
	}
	var page TailPage
	reader := eventRows{attributes: a, begin: func() { page = TailPage{Records: []*Record{}} }}
	reader.take = func(row *eventRow) { j.addTo(&page, &reader, row, q.NumbersOnly) }
	out, err := reader.query(ctx, j.client, input)
	if err != nil {
		return TailPage{}, fmt.Errorf("tail %s: %w", shard, classify(err, j.config.Tables.Journal))
	}
	page.More = out.LastEvaluatedKey != nil
	last := out.LastEvaluatedKey
	if last == nil && len(page.Records)+len(page.Corrupt) > 0 {
		last = reader.item(&reader.last)
	}
	page.Next = j.cursorOf(last, q.After)
	return page, nil
}

func (j *Journal) addTo(page *TailPage, reader *eventRows, row *eventRow, numbersOnly bool) {
	if numbersOnly {
		reader.dropPayload(row)
	}
	r, err := j.recordOfRow(reader, row)
	if err != nil {
		var corrupt *CorruptItemError
		if errors.As(err, &corrupt) {
			page.Corrupt = append(page.Corrupt, corrupt)
		}
		return
	}
	if numbersOnly {
		r.EventID = "" // a derived one may not be the true one
	}
	page.Records = append(page.Records, r)
}

func (j *Journal) cursorOf(it map[string]types.AttributeValue, otherwise Cursor) Cursor {
	value := it[j.config.Attributes.OccurredAt]
	_, sort := j.keysOf(it)
	if at, ok := intOf(value); ok && sort != "" {
		return Cursor{OccurredAt: at, SortKey: sort}
	}
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok || sort == "" {
		return otherwise
	}
	at, err := strconv.ParseFloat(n.Value, 64) // a foreign writer's
	if err != nil {
		return otherwise
	}
	return Cursor{OccurredAt: int64(math.Floor(max(math.MinInt64, min(at, math.MaxInt64/2)))), SortKey: sort, exact: n.Value}
}
