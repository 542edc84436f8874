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

// cursorRow is the sort key of the cursor. It sorts just after the list of those behind, so
// that one query reads both and nothing else.
const cursorRow = "cursor"

// Progress is what a member that takes over a shard has to know.
type Progress struct {
	// Cursor: every event that occurred before it is acked, or its aggregate is on the list of those
	// behind. The beginning of 1970 where there is none yet.
	Cursor time.Time
	// Behind are the aggregates that the cursor has passed unfinished, with the highest event numbers
	// known when they were listed.
	Behind map[aggregate.ID]uint64
}

// Progress reads the shard's cursor and list, strongly consistent: one round trip for each MB. Nothing is
// stamped: what a former owner may still write is as true as what it wrote before.
func (s *Store) Progress(ctx context.Context, k Shard) (Progress, error) {
	progress := Progress{Cursor: time.UnixMilli(0), Behind: map[aggregate.ID]uint64{}}
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:              &s.table,
		ConsistentRead:         aws.Bool(true),
		KeyConditionExpression: aws.String("#pk = :pk AND #sk BETWEEN :behind AND :cursor"),
		ExpressionAttributeNames: map[string]string{
			"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey,
		},
		ExpressionAttributeValues: item{":pk": text(k.partition()), ":behind": text(behindPrefix), ":cursor": text(cursorRow)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return Progress{}, fmt.Errorf("read progress of %s: %w", k.partition(), s.explain(err))
		}
		for _, row := range page.Items {
			if value, ok := strings.CutPrefix(textOf(row[s.keys.SortKey]), behindPrefix); ok {
				progress.Behind[aggregate.ID{Type: k.Topic, Value: value}] = uintOf(row[attrHead])
			} else {
				progress.Cursor = time.UnixMilli(int64(uintOf(row[attrCursor])))
			}
		}
	}
	return progress, nil
}

// SaveCursor moves the cursor, and keeps former owners from moving it.
func (s *Store) SaveCursor(ctx context.Context, k Shard, epoch uint64, cursor time.Time) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.key(k.partition(), cursorRow),
		UpdateExpression:          aws.String("SET #e = :e, #c = :c"),
		ConditionExpression:       aws.String(notNewer),
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
		UpdateExpression:          aws.String("SET #e = :e, #h = :h"),
		ConditionExpression:       aws.String(notNewer),
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
		ConditionExpression:       aws.String(notNewer),
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
