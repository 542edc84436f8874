package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Heads(ctx context.Context, q journaltype.HeadsQuery, pages *engine.HeadPages, yield func(journaltype.Head) bool) error {
	if q.AggregateType == "" {
		return l.scanHeads(ctx, q, pages, yield)
	}
	return l.queryHeads(ctx, q, pages, yield)
}

func (l *layout) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*journaltype.CorruptItemError), yield func([]journaltype.Head) bool) error {
	var start table.Item
	if q.After != (aggregate.ID{}) {
		start = l.key(q.After, 0)
	}
	_, err := l.queryShard(ctx, q.AggregateType, q.Shard, start, q.Consistent, nil, func(items []table.Item) (bool, error) {
		var heads []journaltype.Head
		_, err := l.yieldHeads(items, corrupt, func(h journaltype.Head) bool {
			heads = append(heads, h)
			return true
		})
		return err == nil && yield(heads), err
	})
	return err
}

// headProjection selects the attributes that make up a Head without its snapshot.
func (l *layout) headProjection() (expression *string, names map[string]string) {
	a := l.Config.Attributes
	return aws.String("#pk, #sk, #aid, #n, #v, #r, #t, #d"), table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey,
		"#aid", a.AggregateID, "#n", a.SequenceNumber, "#v", a.Version, "#r", attrRedundant, "#t", attrTruncatedBefore, "#d", attrDeletedAt)
}

func (l *layout) scanHeads(ctx context.Context, q journaltype.HeadsQuery, pages *engine.HeadPages, yield func(journaltype.Head) bool) error {
	projection, names := l.headProjection()
	input := &dynamodb.ScanInput{
		TableName:                 &l.Config.Tables.Snapshot,
		ConsistentRead:            aws.Bool(true),
		ProjectionExpression:      projection,
		FilterExpression:          aws.String("#n = :zero"),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: table.Item{":zero": table.NumberValue(0)},
	}
	if q.After != (aggregate.ID{}) {
		input.ExclusiveStartKey = l.key(q.After, 0)
	}
	for {
		input.Limit = pages.Size(0)
		page, err := l.Client.Scan(ctx, input)
		if err != nil {
			return dynamo.Explain(err, l.Config.Tables.Snapshot)
		}
		if more, err := l.yieldHeads(page.Items, q.Corrupt, yield); !more || err != nil {
			return err
		}
		if input.ExclusiveStartKey = page.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return nil
		}
		pages.Grow()
	}
}

func (l *layout) queryHeads(ctx context.Context, q journaltype.HeadsQuery, pages *engine.HeadPages, yield func(journaltype.Head) bool) error {
	shard := 0
	var start table.Item
	if q.After != (aggregate.ID{}) {
		shard, start = l.Shard(q.After), l.key(q.After, 0)
	}
	for ; shard < l.Config.Shards; shard++ {
		more, err := l.queryShard(ctx, q.AggregateType, shard, start, true, pages, func(items []table.Item) (bool, error) {
			return l.yieldHeads(items, q.Corrupt, yield)
		})
		if !more || err != nil {
			return err
		}
		start = nil
	}
	return nil
}

// queryShard reads the heads of a shard page by page, until page returns false.
func (l *layout) queryShard(
	ctx context.Context, aggregateType string, shard int, start table.Item, consistent bool, pages *engine.HeadPages,
	page func([]table.Item) (more bool, err error),
) (more bool, err error) {
	projection, names := l.headProjection()
	input := &dynamodb.QueryInput{
		TableName:              &l.Config.Tables.Snapshot,
		ConsistentRead:         &consistent,
		KeyConditionExpression: aws.String("#pk = :pk"),
		ProjectionExpression:   projection,
		FilterExpression:       aws.String("#n = :zero"), ExpressionAttributeNames: names,
		ExpressionAttributeValues: table.Item{":zero": table.NumberValue(0), ":pk": table.StringValue(storage.ShardKey(aggregateType, shard))},
		ExclusiveStartKey:         start,
	}
	for {
		input.Limit = pages.Size(0)
		out, err := l.Client.Query(ctx, input)
		if err != nil {
			return false, dynamo.Explain(err, l.Config.Tables.Snapshot)
		}
		if more, err := page(out.Items); !more || err != nil {
			return false, err
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return true, nil
		}
		pages.Grow()
	}
}

func (l *layout) yieldHeads(items []table.Item, corrupt func(*journaltype.CorruptItemError), yield func(journaltype.Head) bool) (more bool, err error) {
	for _, it := range items {
		head, err := l.listedHead(it, corrupt != nil)
		var unreadable *journaltype.CorruptItemError
		if corrupt != nil && errors.As(err, &unreadable) {
			corrupt(unreadable)
			continue
		}
		if err != nil {
			return false, err
		}
		if !yield(head) {
			return false, nil
		}
	}
	return true, nil
}

func (l *layout) listedHead(it table.Item, verifyPlace bool) (journaltype.Head, error) {
	partition, sort := l.KeysOf(it)
	corrupt := &journaltype.CorruptItemError{Table: l.Config.Tables.Snapshot, PartitionKey: partition, SortKey: sort}
	id, ok := l.aggregateOf(it)
	if !ok {
		corrupt.Reason = "has no " + l.Config.Attributes.AggregateID + " that fits its partition"
		return journaltype.Head{}, corrupt
	}
	if want := l.partitionKey(id); verifyPlace && (partition != want || sort != storage.SortKey(id, 0)) {
		corrupt.Aggregate, corrupt.Misplaced = id, true
		corrupt.Reason = fmt.Sprintf("is not where the head of its aggregate has to be, %q / %q", want, storage.SortKey(id, 0))
		return journaltype.Head{}, corrupt
	}
	if reason := tooLong(id); reason != "" {
		corrupt.Aggregate, corrupt.Reason, corrupt.Remedy = id, reason, shorten
		return journaltype.Head{}, corrupt
	}
	head, err := l.headOf(id, it)
	if errors.As(err, &corrupt) {
		corrupt.Aggregate = id
	}
	return head, err
}
