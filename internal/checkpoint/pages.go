package checkpoint

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
)

// nextPage reads a page, and retries it for up to 30 seconds, because a long list has many pages.
// If ctx ends meanwhile, it returns the error of the last attempt before that.
func (s *Store) nextPage(ctx context.Context, pages *dynamodb.QueryPaginator) (*dynamodb.QueryOutput, error) {
	return retryPage(ctx, func() (*dynamodb.QueryOutput, error) { return pages.NextPage(ctx) })
}

func retryPage(ctx context.Context, read func() (*dynamodb.QueryOutput, error)) (page *dynamodb.QueryOutput, err error) {
	wait := retry.Pauses(50*time.Millisecond, 5*time.Second, 30*time.Second)
	var refused error
	err = backoff.Retry(func() error {
		if page, err = read(); err != nil && !dynamo.IsThrottle(err) && !errors.Is(err, dynamo.ErrNoReply) {
			return backoff.Permanent(err)
		}
		if ctx.Err() == nil {
			refused = err
		}
		return err
	}, backoff.WithContext(wait, ctx))
	if err != nil && ctx.Err() != nil && refused != nil {
		err = refused
	}
	return page, err
}

const (
	// firstPage is the number of rows of the first page for a reader that may stop soon. Each page
	// is twice as large as the one before, up to lastPage, so the reader gets at most about twice
	// as many rows as it needs.
	firstPage = 25
	lastPage  = 1600
)

// growingPages yields the rows of a shard whose sort keys have the prefix. If after is not empty,
// it begins behind that sort key, which need not exist. The first pages are small. It reads a page
// when the caller asks for it, with strong consistency: one read unit for each 4 KB, and at least
// one for each page.
func (s *Store) growingPages(ctx context.Context, k Shard, prefix, after string) iter.Seq2[[]item, error] {
	return func(yield func([]item, error) bool) {
		var start item
		if after != "" {
			start = s.key(k.partition(), after)
		}
		for limit := int32(firstPage); ; limit = min(2*limit, lastPage) {
			page, err := retryPage(ctx, func() (*dynamodb.QueryOutput, error) {
				return s.client.Query(ctx, &dynamodb.QueryInput{
					TableName:                 &s.table,
					ConsistentRead:            aws.Bool(true),
					KeyConditionExpression:    aws.String("#pk = :pk AND begins_with(#sk, :prefix)"),
					ExpressionAttributeNames:  map[string]string{"#pk": s.keys.PartitionKey, "#sk": s.keys.SortKey},
					ExpressionAttributeValues: item{":pk": text(k.partition()), ":prefix": text(prefix)},
					ExclusiveStartKey:         start,
					Limit:                     &limit,
				})
			})
			if err != nil {
				yield(nil, s.explain(err))
				return
			}
			if !yield(page.Items, nil) || page.LastEvaluatedKey == nil {
				return
			}
			start = page.LastEvaluatedKey
		}
	}
}
