package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

const behindPrefix = "behind/"

// Shard names a logical shard as a group sees it.
type Shard struct {
	Group, Topic string
	Number       int
}

func (k Shard) partition() string { return k.Group + "/" + journal.ShardKey(k.Topic, k.Number) }

// ClaimCursor stamps the epoch on the shard's cursor and gives it: every event that
// occurred before it is acked, or its aggregate is on the list of those behind. The beginning
// of time where there is none yet.
func (s *Store) ClaimCursor(ctx context.Context, k Shard, epoch uint64) (time.Time, error) {
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), "cursor"),
		UpdateExpression:          expression("SET #e = :e"),
		ConditionExpression:       expression(notNewer),
		ExpressionAttributeNames:  names(),
		ExpressionAttributeValues: item{":e": number(epoch)},
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("claim cursor of %s: %w", k.partition(), err)
	}
	return time.UnixMilli(int64(uintOf(row[attrCursor]))), nil
}

// SaveCursor moves a claimed cursor.
func (s *Store) SaveCursor(ctx context.Context, k Shard, epoch uint64, cursor time.Time) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), "cursor"),
		UpdateExpression:          expression("SET #c = :c"),
		ConditionExpression:       expression("#e = :e"),
		ExpressionAttributeNames:  names("#c", attrCursor),
		ExpressionAttributeValues: item{":e": number(epoch), ":c": number(cursor.UnixMilli())},
	})
	if err != nil {
		return fmt.Errorf("save cursor of %s: %w", k.partition(), err)
	}
	return nil
}

// ListBehind puts an aggregate on the shard's list of those behind, with the highest
// event number known of it, so that the cursor can pass its events.
func (s *Store) ListBehind(ctx context.Context, group string, id aggregate.ID, epoch, head uint64) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(s.shardPartition(group, id), behindPrefix+id.Value),
		UpdateExpression:          expression("SET #e = :e, #h = :h"),
		ConditionExpression:       expression(notNewer),
		ExpressionAttributeNames:  names("#h", attrHead),
		ExpressionAttributeValues: item{":e": number(epoch), ":h": number(head)},
	})
	if err != nil {
		return fmt.Errorf("list %s as behind: %w", id, err)
	}
	return nil
}

// UnlistBehind takes it off again.
func (s *Store) UnlistBehind(ctx context.Context, group string, id aggregate.ID, epoch uint64) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &s.table,
		Key:                       s.key(s.shardPartition(group, id), behindPrefix+id.Value),
		ConditionExpression:       expression(notNewer),
		ExpressionAttributeNames:  names(),
		ExpressionAttributeValues: item{":e": number(epoch)},
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		err = ErrFenced
	} else if err != nil {
		err = s.explain(err)
	}
	if err != nil {
		return fmt.Errorf("take %s off the list of those behind: %w", id, err)
	}
	return nil
}

// Behind gives the shard's list of those behind: aggregates and the highest event numbers
// known of them.
func (s *Store) Behind(ctx context.Context, k Shard) (map[aggregate.ID]uint64, error) {
	behind := map[aggregate.ID]uint64{}
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:              &s.table,
		ConsistentRead:         aws.Bool(true),
		KeyConditionExpression: expression("#pk = :pk AND begins_with(#sk, :prefix)"),
		ExpressionAttributeNames: map[string]string{
			"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey,
		},
		ExpressionAttributeValues: item{":pk": text(k.partition()), ":prefix": text(behindPrefix)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.explain(err)
		}
		for _, row := range page.Items {
			value := strings.TrimPrefix(textOf(row[s.keys.SortKey]), behindPrefix)
			behind[aggregate.ID{Type: k.Topic, Value: value}] = uintOf(row[attrHead])
		}
	}
	return behind, nil
}
