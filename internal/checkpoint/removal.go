package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/journal"
)

// RemoveShard deletes all rows of a shard that were written between two resets of its group. It
// costs one read unit for about 40 rows, and one write unit for each row. It calls progress with
// the number of rows that each request has deleted.
//
// The partition may also contain a membership, which is not deleted. For example, the membership of
// the topic "account-1" is in the partition of shard 1 of the topic "account".
func (s *Store) RemoveShard(ctx context.Context, k Shard, progress func(rows int)) error {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true), // a row that it misses would stay forever
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ProjectionExpression:      aws.String("#pk, #sk"),
		ExpressionAttributeNames:  map[string]string{"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey},
		ExpressionAttributeValues: item{":pk": text(k.partition())},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read rows of %s: %w", k.partition(), s.explain(err))
		}
		isMembership := func(row item) bool { return textOf(row[s.keys.SortKey]) == membershipRow }
		for rows := slices.DeleteFunc(page.Items, isMembership); len(rows) > 0; {
			some := rows[:min(maxBatch, len(rows))]
			rows = rows[len(some):]
			if err := s.deleteBatch(ctx, some); err != nil {
				return fmt.Errorf("delete rows of %s: %w", k.partition(), err)
			}
			progress(len(some))
		}
	}
	return nil
}

// maxBatch is the limit of DynamoDB for the writes of one BatchWriteItem.
const maxBatch = 25

func (s *Store) deleteBatch(ctx context.Context, keys []item) error {
	requests := make([]types.WriteRequest, len(keys))
	for i, key := range keys {
		requests[i].DeleteRequest = &types.DeleteRequest{Key: key}
	}
	wait := backoff.WithContext(backoff.NewExponentialBackOff(), ctx)
	return backoff.Retry(func() error {
		out, err := s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{s.table: requests},
		})
		if err != nil {
			return backoff.Permanent(s.explain(err))
		}
		if requests = out.UnprocessedItems[s.table]; len(requests) > 0 {
			return fmt.Errorf("%d rows of checkpoint table %q were left: %w", len(requests), s.table, journal.ErrThrottled)
		}
		return nil
	}, wait)
}

// RemoveMembership deletes a group's membership and removes the group from the registry, if the
// membership has not changed since it was read. The registry keeps the number of resets with which
// a new group of the same name begins. So a former member that has noticed nothing can write no row
// that the new group reads.
func (s *Store) RemoveMembership(ctx context.Context, k Key, seen Membership) error {
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Delete: &types.Delete{
			TableName: &s.table, Key: s.membershipKey(k),
			ConditionExpression:       aws.String("#c = :c"),
			ExpressionAttributeNames:  map[string]string{"#c": attrChange},
			ExpressionAttributeValues: item{":c": text(seen.change)},
		}},
		{Put: &types.Put{TableName: &s.table, Item: registryRow(s.registryKey(k), seen.Resets+1)}},
	}})
	if _, refused := refusal(err); refused || conflicts(err) {
		return fmt.Errorf("remove the membership of %s: %w", k.partition(), ErrMembershipChanged)
	}
	if err != nil {
		return fmt.Errorf("remove the membership of %s: %w", k.partition(), s.explain(err))
	}
	return nil
}
