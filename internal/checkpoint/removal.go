package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
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
	wait := backoff.WithContext(retry.Pauses(50*time.Millisecond, 5*time.Second, 15*time.Minute), ctx)
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
// membership has not changed since it was read. The other rows of the group stay, see [FenceTime].
// The registry keeps the number of resets with which a new group of the same name begins. So a
// former member that has noticed nothing can write no row that the new group reads.
func (s *Store) RemoveMembership(ctx context.Context, k Key, seen Membership, now time.Time) error {
	row := s.registryKey(k)
	row[attrNext], row[attrEnded] = number(seen.Resets+1), seen.Ended.end(seen.Resets, now).value()
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Delete: &types.Delete{
			TableName: &s.table, Key: s.membershipKey(k),
			ConditionExpression:       aws.String("#c = :c"),
			ExpressionAttributeNames:  map[string]string{"#c": attrChange},
			ExpressionAttributeValues: item{":c": text(seen.change)},
		}},
		{Put: &types.Put{TableName: &s.table, Item: row}},
	}})
	if _, refused := refusal(err); refused || conflicts(err) {
		return fmt.Errorf("remove the membership of %s: %w", k.partition(), ErrMembershipChanged)
	}
	if err != nil {
		return fmt.Errorf("remove the membership of %s: %w", k.partition(), s.explain(err))
	}
	return nil
}

// Ended returns the ended generations of a group that exists or was removed. It costs one read unit
// for each KB of the membership, and one more if the group was removed. It returns [ErrNoGroup] if
// there never was such a group.
func (s *Store) Ended(ctx context.Context, k Key) (Ended, error) {
	membership, err := s.ReadMembership(ctx, k)
	if err != nil || membership.Exists() {
		return membership.Ended, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.registryKey(k), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Ended{}, fmt.Errorf("read %s in the registry of groups: %w", k.partition(), s.explain(err))
	}
	if out.Item[attrNext] == nil {
		return Ended{}, ErrNoGroup
	}
	return endedOf(out.Item[attrEnded])
}

// Removed returns the ended generations of the groups that were removed. If some rows of the
// registry cannot be read, it returns the others and an error. It costs one read unit for about 40
// groups.
func (s *Store) Removed(ctx context.Context) (map[Key]Ended, error) {
	removed := map[Key]Ended{}
	var corrupt error
	err := s.readRegistry(ctx, func(k Key, row item) {
		if row[attrNext] == nil {
			return
		}
		ended, err := endedOf(row[attrEnded])
		if err != nil {
			corrupt = errors.Join(corrupt, fmt.Errorf("%s in the registry of groups: %w", k.partition(), err))
			return
		}
		removed[k] = ended
	})
	return removed, errors.Join(err, corrupt)
}

// Forget records that the rows of the generations below a number were deleted, so that nobody
// searches for them again. seen is what Ended or Removed has returned.
func (s *Store) Forget(ctx context.Context, k Key, seen Ended, before uint64) error {
	_, err := s.ModifyMembership(ctx, k, func(r Membership) (Membership, error) {
		r.Ended = r.Ended.without(before)
		return r, nil
	})
	if !errors.Is(err, ErrNoGroup) {
		return err
	}
	_, err = s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.registryKey(k),
		UpdateExpression:          aws.String("SET #ended = :left"),
		ConditionExpression:       aws.String("attribute_exists(#next) AND #ended = :seen"),
		ExpressionAttributeNames:  map[string]string{"#ended": attrEnded, "#next": attrNext},
		ExpressionAttributeValues: item{":seen": seen.value(), ":left": seen.without(before).value()},
	})
	if errors.Is(err, ErrFenced) {
		return nil // another operator has done it, or the group exists again: a later call does it
	}
	if err != nil {
		return fmt.Errorf("change %s in the registry of groups: %w", k.partition(), err)
	}
	return nil
}
