package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

// HeadsQuery asks for the heads of many aggregates.
type HeadsQuery struct {
	// AggregateType leaves out all others, and reads only its partitions. Empty for all types.
	AggregateType string
	// After is the aggregate of the head after which to continue. Zero for the beginning. It is of
	// AggregateType, if there is one.
	After aggregate.ID
	// Corrupt, if set, is called for heads that cannot be read, and for those that are Misplaced:
	// that are not where readers look for the head of their aggregate. Without it the former end
	// the sequence, and Heads yields the latter.
	Corrupt func(*CorruptItemError)
}

// Heads yields the heads of the store, without their snapshots and with tombstones, in an order
// that stays the same as long as nothing is written. It scans the snapshot table, strongly
// consistent and page by page: one read unit for each 4 KB of everything in it, including states,
// because DynamoDB bills whole items. An aggregate that is created meanwhile may be missing.
//
// It ends with the first error: [*CorruptItemError], whose Aggregate, if it is set, is the After
// with which to continue, [ErrThrottled], [ErrTableMissing], [ErrAccess], the context's,
// *aggregate.InvalidIDError for After.
func (j *Journal) Heads(ctx context.Context, q HeadsQuery) iter.Seq2[Head, error] {
	return j.engine.Heads(ctx, q)
}

func (j *engine) Heads(ctx context.Context, q HeadsQuery) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		err := q.validate()
		switch {
		case err != nil:
		case q.AggregateType == "":
			err = j.scanHeads(ctx, q, func(h Head) bool { return yield(h, nil) })
		default:
			err = j.queryHeads(ctx, q, func(h Head) bool { return yield(h, nil) })
		}
		if err != nil {
			yield(Head{}, fmt.Errorf("read heads: %w", err))
		}
	}
}

func (q HeadsQuery) validate() error {
	if q.After == (aggregate.ID{}) {
		return nil
	}
	if q.AggregateType != "" && q.After.Type != q.AggregateType {
		return &aggregate.InvalidIDError{ID: q.After, Reason: fmt.Sprintf("After is not of type %q, whose heads are asked for", q.AggregateType)}
	}
	return q.After.Validate()
}

// headProjection is what a Head without its snapshot needs.
func (j *engine) headProjection() (expression *string, names map[string]string) {
	a := j.config.Attributes
	return aws.String("#pk, #sk, #aid, #n, #v, #r, #t, #d"), attributeNames("#pk", a.PartitionKey, "#sk", a.SortKey,
		"#aid", a.AggregateID, "#n", a.SequenceNumber, "#v", a.Version, "#r", attrRedundant, "#t", attrTruncatedBefore, "#d", attrDeletedAt)
}

func (j *engine) scanHeads(ctx context.Context, q HeadsQuery, yield func(Head) bool) error {
	projection, names := j.headProjection()
	input := &dynamodb.ScanInput{
		TableName:                 &j.config.Tables.Snapshot,
		ConsistentRead:            aws.Bool(true),
		ProjectionExpression:      projection,
		FilterExpression:          aws.String("#n = :zero"),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: item{":zero": numberValue(0)},
	}
	if q.After != (aggregate.ID{}) {
		input.ExclusiveStartKey = j.key(q.After, 0)
	}
	for {
		page, err := j.client.Scan(ctx, input)
		if err != nil {
			return dynamo.Explain(err, j.config.Tables.Snapshot)
		}
		if more, err := j.yieldHeads(page.Items, q.Corrupt, yield); !more || err != nil {
			return err
		}
		if input.ExclusiveStartKey = page.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return nil
		}
	}
}

func (j *engine) queryHeads(ctx context.Context, q HeadsQuery, yield func(Head) bool) error {
	shard := 0
	var start item
	if q.After != (aggregate.ID{}) {
		shard, start = j.Shard(q.After), j.key(q.After, 0)
	}
	for ; shard < j.config.Shards; shard++ {
		more, err := j.queryShard(ctx, q.AggregateType, shard, start, true, func(items []item) (bool, error) {
			return j.yieldHeads(items, q.Corrupt, yield)
		})
		if !more || err != nil {
			return err
		}
		start = nil
	}
	return nil
}

func (j *engine) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError)) iter.Seq2[[]Head, error] {
	return func(yield func([]Head, error) bool) {
		var start item
		if q.After != (aggregate.ID{}) {
			start = j.key(q.After, 0)
		}
		_, err := j.queryShard(ctx, q.AggregateType, q.Shard, start, q.Consistent, func(items []item) (bool, error) {
			var heads []Head
			_, err := j.yieldHeads(items, corrupt, func(h Head) bool {
				heads = append(heads, h)
				return true
			})
			return err == nil && yield(heads, nil), err
		})
		if err != nil {
			yield(nil, fmt.Errorf("read heads of %s: %w", storage.ShardKey(q.AggregateType, q.Shard), err))
		}
	}
}

// queryShard returns the pages of a shard's heads, until page says that no more are wanted.
func (j *engine) queryShard(
	ctx context.Context, aggregateType string, shard int, start item, consistent bool, page func([]item) (more bool, err error),
) (more bool, err error) {
	projection, names := j.headProjection()
	input := &dynamodb.QueryInput{
		TableName:              &j.config.Tables.Snapshot,
		ConsistentRead:         &consistent,
		KeyConditionExpression: aws.String("#pk = :pk"),
		ProjectionExpression:   projection,
		FilterExpression:       aws.String("#n = :zero"), ExpressionAttributeNames: names,
		ExpressionAttributeValues: item{":zero": numberValue(0), ":pk": stringValue(storage.ShardKey(aggregateType, shard))},
		ExclusiveStartKey:         start,
	}
	for {
		out, err := j.client.Query(ctx, input)
		if err != nil {
			return false, dynamo.Explain(err, j.config.Tables.Snapshot)
		}
		if more, err := page(out.Items); !more || err != nil {
			return false, err
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; input.ExclusiveStartKey == nil {
			return true, nil
		}
	}
}

func (j *engine) yieldHeads(items []item, corrupt func(*CorruptItemError), yield func(Head) bool) (more bool, err error) {
	for _, it := range items {
		head, err := j.listedHead(it, corrupt != nil)
		var unreadable *CorruptItemError
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

func (j *engine) listedHead(it item, verifyPlace bool) (Head, error) {
	partition, sort := j.keysOf(it)
	corrupt := &CorruptItemError{Table: j.config.Tables.Snapshot, PartitionKey: partition, SortKey: sort}
	id, ok := j.aggregateOf(it)
	if !ok {
		corrupt.Reason = "has no " + j.config.Attributes.AggregateID + " that fits its partition"
		return Head{}, corrupt
	}
	if want := j.partitionKey(id); verifyPlace && (partition != want || sort != storage.SortKey(id, 0)) {
		corrupt.Aggregate, corrupt.Misplaced = id, true
		corrupt.Reason = fmt.Sprintf("is not where the head of its aggregate has to be, %q / %q", want, storage.SortKey(id, 0))
		return Head{}, corrupt
	}
	if reason := tooLong(id); reason != "" {
		corrupt.Aggregate, corrupt.Reason = id, reason
		return Head{}, corrupt
	}
	head, err := j.headOf(id, it)
	if errors.As(err, &corrupt) {
		corrupt.Aggregate = id
	}
	return head, err
}
