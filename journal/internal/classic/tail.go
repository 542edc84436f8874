package classic

import (
	"context"
	"math"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Tail(ctx context.Context, q storage.TailQuery) (storage.TailPage, error) {
	a := l.Config.Attributes
	shard := storage.ShardKey(q.AggregateType, q.Shard)
	from := q.After.OccurredAt
	if q.After == (storage.Cursor{}) {
		// Events can be dated before 1970.
		from = math.MinInt64
	}
	input := &dynamodb.QueryInput{
		TableName:                &l.Config.Tables.Journal,
		IndexName:                &l.Config.Indexes.JournalTail,
		KeyConditionExpression:   aws.String("#pk = :shard AND #at >= :from"),
		ExpressionAttributeNames: table.AttributeNames("#pk", a.PartitionKey, "#at", a.OccurredAt),
		ExpressionAttributeValues: table.Item{
			":shard": table.StringValue(shard), ":from": table.NumberValue(l.Config.StoredTime(from)),
		},
	}
	if !q.Until.IsZero() {
		input.KeyConditionExpression = aws.String("#pk = :shard AND #at BETWEEN :from AND :until")
		input.ExpressionAttributeValues[":until"] = table.NumberValue(l.Config.LastStoredTime(q.Until.UnixMilli()))
		if q.Until.UnixMilli() < from {
			return storage.TailPage{Next: q.After}, nil // DynamoDB refuses an empty range
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
		input.ExclusiveStartKey = table.Item{
			a.PartitionKey: table.StringValue(shard),
			a.SortKey:      table.StringValue(q.After.SortKey),
			a.OccurredAt:   table.NumberValue(l.Config.StoredTime(q.After.OccurredAt)),
		}
		if q.After.Exact != "" {
			input.ExclusiveStartKey[a.OccurredAt] = &types.AttributeValueMemberN{Value: q.After.Exact}
		}
	}
	read, err := rows.Query(ctx, l.Source, input, func(row rows.Row) readRecord { return l.readRow(row, q.NumbersOnly) })
	if err != nil {
		return storage.TailPage{}, dynamo.Explain(err, l.Config.Tables.Journal)
	}
	page := storage.TailPage{Records: make([]*journaltype.Record, 0, len(read.Items)), More: read.LastKey != nil}
	for _, r := range read.Items {
		if r.corrupt != nil {
			page.Corrupt = append(page.Corrupt, r.corrupt)
		} else {
			page.Records = append(page.Records, r.record)
		}
	}
	last := read.LastKey
	if last == nil {
		last = read.Last.Item()
	}
	page.Next = l.cursorOf(last, q.After)
	return page, nil
}

func (l *layout) cursorOf(it map[string]types.AttributeValue, otherwise storage.Cursor) storage.Cursor {
	value := it[l.Config.Attributes.OccurredAt]
	_, sort := l.KeysOf(it)
	if at, ok := table.IntOf(value); ok && sort != "" {
		cursor := storage.Cursor{OccurredAt: l.Config.MillisOf(at), SortKey: sort}
		if l.Config.StoredTime(cursor.OccurredAt) != at {
			cursor.Exact = strconv.FormatInt(at, 10)
		}
		return cursor
	}
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok || sort == "" {
		return otherwise
	}
	// Another program may have written a fraction.
	at, err := strconv.ParseFloat(n.Value, 64)
	if err != nil {
		return otherwise
	}
	floor := int64(math.Floor(max(math.MinInt64, min(at, math.MaxInt64/2))))
	return storage.Cursor{OccurredAt: l.Config.MillisOf(floor), SortKey: sort, Exact: n.Value}
}
