package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Listed reads the entry of an aggregate on the behind list with strong consistency. The second
// result is false if there is none.
func (s *Store) Listed(ctx context.Context, group Group, id aggregate.ID) (Behind, bool, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.behindKey(group, id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Behind{}, false, fmt.Errorf("read the entry of %s on the behind list: %w", id, s.explain(err))
	}
	if len(out.Item) == 0 {
		return Behind{}, false, nil
	}
	b, err := behindOf(id, out.Item)
	if err != nil {
		return Behind{}, false, fmt.Errorf("read the entry of %s on the behind list: %w", id, err)
	}
	return b, true, nil
}

// Entries reads the entries of aggregates of one shard on the behind list with strong consistency.
// It costs one round trip for each 100 aggregates, and a read unit for each aggregate.
func (s *Store) Entries(ctx context.Context, k Shard, ids []aggregate.ID) (entries []Behind, err error) {
	for some := range slices.Chunk(ids, maxKeys) {
		keys := make([]item, len(some))
		for i, id := range some {
			keys[i] = s.key(k.partition(), behindPrefix+id.Value)
		}
		rows, err := s.batchGet(ctx, keys, true)
		if err == nil {
			var found []Behind
			found, err = s.entriesOf(k, rows)
			entries = append(entries, found...)
		}
		if err != nil {
			return nil, fmt.Errorf("read entries of the behind list of %s: %w", k.partition(), err)
		}
	}
	return entries, nil
}

// maxKeys is the limit of DynamoDB for the keys of one BatchGetItem.
const maxKeys = 100

// Positions reads the positions on aggregates of one shard. Aggregates without a position are not
// in the result. It costs one round trip for each 100 aggregates, and for each aggregate half a
// read unit, or one if consistent is true.
func (s *Store) Positions(ctx context.Context, k Shard, ids []aggregate.ID, consistent bool) (map[aggregate.ID]uint64, error) {
	if s.rows != nil {
		return s.rowPositions(ctx, k, ids, consistent)
	}
	positions := map[aggregate.ID]uint64{}
	for some := range slices.Chunk(ids, maxKeys) {
		keys := make([]item, len(some))
		for i, id := range some {
			keys[i] = s.key(k.partition(), positionSort(id.Value))
		}
		rows, err := s.batchGet(ctx, keys, consistent)
		if err != nil {
			return nil, fmt.Errorf("read positions of %s: %w", k.partition(), err)
		}
		for _, row := range rows {
			value := positionValue(textOf(row[s.keys.SortKey]))
			position, err := uintOf(row[attrPosition])
			if err != nil {
				return nil, fmt.Errorf("position on %s of %s: %w", value, k.partition(), err)
			}
			if row[attrPosition] != nil {
				positions[aggregate.ID{Type: k.Topic, Value: value}] = position
			}
		}
	}
	return positions, nil
}

func positionValue(sort string) string {
	return strings.TrimSuffix(strings.TrimPrefix(sort, positionPrefix), positionSuffix)
}

// batchGet reads up to maxKeys rows. Rows that do not exist are left out.
func (s *Store) batchGet(ctx context.Context, keys []item, consistent bool) (rows []item, err error) {
	return s.batchGetIn(ctx, s.table, types.KeysAndAttributes{Keys: keys, ConsistentRead: &consistent}, s.explain)
}

// batchGetIn is batchGet in any table.
func (s *Store) batchGetIn(ctx context.Context, table string, left types.KeysAndAttributes, explain func(error) error) (rows []item, err error) {
	err = backoff.Retry(func() error {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: left}})
		if err != nil {
			return backoff.Permanent(explain(err))
		}
		rows = append(rows, out.Responses[table]...)
		if left.Keys = out.UnprocessedKeys[table].Keys; len(left.Keys) > 0 {
			return fmt.Errorf("%d rows of table %q were left: %w", len(left.Keys), table, journal.ErrThrottled)
		}
		return nil
	}, backoff.WithContext(retry.Pauses(50*time.Millisecond, 5*time.Second, 15*time.Minute), ctx))
	return rows, err
}

// ClaimedPositions yields the aggregates of a shard whose position has an epoch between from and
// to, both included. It reads all positions of the shard with strong consistency, each page when
// the caller asks for it. One read unit covers about 40 positions.
func (s *Store) ClaimedPositions(ctx context.Context, k Shard, from, to uint64) iter.Seq2[[]aggregate.ID, error] {
	if s.rows != nil {
		return s.claimedRows(ctx, k, from, to)
	}
	return func(yield func([]aggregate.ID, error) bool) {
		pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
			TableName:                &s.table,
			ConsistentRead:           aws.Bool(true),
			KeyConditionExpression:   aws.String("#pk = :pk AND begins_with(#sk, :prefix)"),
			FilterExpression:         aws.String("#e BETWEEN :from AND :to"),
			ProjectionExpression:     aws.String("#sk"),
			ExpressionAttributeNames: names("#pk", s.keys.PartitionKey, "#sk", s.keys.SortKey),
			ExpressionAttributeValues: item{
				":pk": text(k.partition()), ":prefix": text(positionPrefix), ":from": number(from), ":to": number(to),
			},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("read positions of %s: %w", k.partition(), s.explain(err)))
				return
			}
			ids := make([]aggregate.ID, len(page.Items))
			for i, row := range page.Items {
				ids[i] = aggregate.ID{Type: k.Topic, Value: positionValue(textOf(row[s.keys.SortKey]))}
			}
			if !yield(ids, nil) {
				return
			}
		}
	}
}

// Unclaimed yields the aggregates of a shard that have no position row. There can be many in the
// first term of a group, because its owner claims none. It reads all heads with strong consistency,
// each page when the caller asks for it. It costs another read unit for each aggregate.
func (s *Store) Unclaimed(ctx context.Context, k Shard) iter.Seq2[[]aggregate.ID, error] {
	return func(yield func([]aggregate.ID, error) bool) {
		q := storage.HeadsOfShard{AggregateType: k.Topic, Shard: k.Number, Consistent: true}
		for heads, err := range s.journal.Raw().ShardHeads(ctx, q, func(*journal.CorruptItemError) {}) {
			var ids []aggregate.ID
			if err == nil {
				ids, err = s.without(ctx, k, heads)
			}
			if !yield(ids, err) || err != nil {
				return
			}
		}
	}
}

// without returns the aggregates of some heads that have no position row.
func (s *Store) without(ctx context.Context, k Shard, heads []journal.Head) (ids []aggregate.ID, err error) {
	if s.rows != nil {
		return s.withoutRow(ctx, k, heads)
	}
	for some := range slices.Chunk(heads, maxKeys) {
		keys := make([]item, len(some))
		for i, head := range some {
			keys[i] = s.key(k.partition(), positionSort(head.Aggregate.Value))
		}
		rows, err := s.batchGet(ctx, keys, true)
		if err != nil {
			return nil, fmt.Errorf("read positions of %s: %w", k.partition(), err)
		}
		there := map[string]bool{}
		for _, row := range rows {
			there[textOf(row[s.keys.SortKey])] = true
		}
		for _, head := range some {
			if !there[positionSort(head.Aggregate.Value)] {
				ids = append(ids, head.Aggregate)
			}
		}
	}
	return ids, nil
}

// Baseline returns the position at which a group begins with an aggregate on which it has no
// position: the number of the last event before the start of the group. It costs about log2(n) read
// units for n events.
func (s *Store) Baseline(ctx context.Context, head journal.Head, start time.Time) (uint64, error) {
	if start.IsZero() {
		return 0, nil
	}
	before, err := s.journal.Raw().NumberAt(ctx, head, start.Add(-time.Millisecond))
	var truncated *journal.TruncatedError
	if errors.As(err, &truncated) {
		return truncated.Before - 1, nil
	}
	return before, err
}
