package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Listed returns the entry of an aggregate on the list of those behind, strongly consistent, and
// whether there is one.
func (s *Store) Listed(ctx context.Context, group Group, id aggregate.ID) (Behind, bool, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.behindKey(group, id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Behind{}, false, fmt.Errorf("read entry of %s on the list of those behind: %w", id, s.explain(err))
	}
	if len(out.Item) == 0 {
		return Behind{}, false, nil
	}
	b, err := behindOf(id, out.Item)
	if err != nil {
		return Behind{}, false, fmt.Errorf("read entry of %s on the list of those behind: %w", id, err)
	}
	return b, true, nil
}

// maxKeys is DynamoDB's limit for one BatchGetItem.
const maxKeys = 100

// Positions reads the positions on aggregates of one shard, those that there are: one round trip
// for each hundred, and half a read unit for each aggregate, or one if it is to be strongly
// consistent.
func (s *Store) Positions(ctx context.Context, k Shard, ids []aggregate.ID, consistent bool) (map[aggregate.ID]uint64, error) {
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

// batchGet reads up to maxKeys rows. Those that do not exist are left out.
func (s *Store) batchGet(ctx context.Context, keys []item, consistent bool) (rows []item, err error) {
	err = backoff.Retry(func() error {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: keys, ConsistentRead: &consistent}},
		})
		if err != nil {
			return backoff.Permanent(s.explain(err))
		}
		rows = append(rows, out.Responses[s.table]...)
		if keys = out.UnprocessedKeys[s.table].Keys; len(keys) > 0 {
			return fmt.Errorf("%d rows of checkpoint table %q were left: %w", len(keys), s.table, journal.ErrThrottled)
		}
		return nil
	}, backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
	return rows, err
}

// Baseline is where a group that starts at a time begins with an aggregate that it has no position
// on: after the last event before that time. It costs about log2(n) read units of events.
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
