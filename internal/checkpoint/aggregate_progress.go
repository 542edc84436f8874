package checkpoint

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// AggregateProgress compares the head of an aggregate with the position of a group.
type AggregateProgress struct {
	Head     journal.Head // without its snapshot
	Position uint64
	Found    bool // whether the group has a position
}

// AggregateProgress yields the heads of a shard with the group's positions, either all or those
// after an aggregate. It reads a page when the caller asks for it, with eventual consistency: half
// a read unit for each 4 KB of heads, including their states, and of positions (about 100 bytes
// each). It calls corrupt for each head that cannot be read.
func (s *Store) AggregateProgress(
	ctx context.Context, k Shard, after aggregate.ID, corrupt func(*journal.CorruptItemError),
) iter.Seq2[[]AggregateProgress, error] {
	return func(yield func([]AggregateProgress, error) bool) {
		q := storage.HeadsOfShard{AggregateType: k.Topic, Shard: k.Number, After: after}
		for heads, err := range s.journal.Raw().ShardHeads(ctx, q, corrupt) {
			if err != nil {
				yield(nil, err)
				return
			}
			page, err := s.progressOfHeads(ctx, k, heads)
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

func (s *Store) progressOfHeads(ctx context.Context, k Shard, heads []journal.Head) ([]AggregateProgress, error) {
	if len(heads) == 0 {
		return nil, nil
	}
	page := make([]AggregateProgress, len(heads))
	if s.rows != nil {
		positions, err := s.rowPositions(ctx, k, idsOf(heads), false)
		if err != nil {
			return nil, err
		}
		for i, head := range heads {
			position, found := positions[head.Aggregate]
			page[i] = AggregateProgress{Head: head, Position: position, Found: found}
		}
		return page, nil
	}
	sorts := make([]string, len(heads))
	for i, head := range heads {
		sorts[i] = positionSort(head.Aggregate.Value)
	}
	positions, err := s.positions(ctx, k, slices.Min(sorts), slices.Max(sorts))
	if err != nil {
		return nil, err
	}
	for i, head := range heads {
		position, found := positions[head.Aggregate.Value]
		page[i] = AggregateProgress{Head: head, Position: position, Found: found}
	}
	return page, nil
}

// positions reads the position rows from one sort key to another. Their order may differ from the
// order of the heads.
func (s *Store) positions(ctx context.Context, k Shard, from, to string) (map[string]uint64, error) {
	positions := map[string]uint64{}
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:              &s.table,
		KeyConditionExpression: aws.String("#pk = :pk AND #sk BETWEEN :from AND :to"),
		ExpressionAttributeNames: map[string]string{
			"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey,
		},
		ExpressionAttributeValues: item{
			":pk": text(k.partition()), ":from": text(from), ":to": text(to),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read positions of %s: %w", k.partition(), s.explain(err))
		}
		for _, row := range page.Items {
			value := positionValue(textOf(row[s.keys.SortKey]))
			position, err := uintOf(row[attrPosition])
			if err != nil {
				return nil, fmt.Errorf("position on %s of %s: %w", value, k.partition(), err)
			}
			if row[attrPosition] != nil {
				positions[value] = position
			}
		}
	}
	return positions, nil
}
