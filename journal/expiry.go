package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// expiresAtOnce is the number of requests that expireAll makes at the same time.
const expiresAtOnce = 16

// needsExpiry returns an error if events should expire but time to live is off: they would stay
// forever.
func (s *store) needsExpiry(ctx context.Context, removal Removal) error {
	if removal.After <= 0 {
		return nil
	}
	table := s.config.Tables.Journal
	out, err := s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return dynamo.Explain(err, table)
	}
	if d := out.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == s.config.Attributes.TTL &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	return &ConfigError{Field: "Removal.After", Reason: fmt.Sprintf(
		"needs time to live on attribute %q of table %q, which is off: turn it on, or leave After 0 to delete at once", s.config.Attributes.TTL, table)}
}

// expireAll sets the time to live of items. It makes 16 requests at a time, because a batch request
// cannot do this. It does not create items that are already gone.
func (s *store) expireAll(ctx context.Context, table string, keys []item, at time.Time) error {
	updates, ctx := errgroup.WithContext(ctx)
	updates.SetLimit(expiresAtOnce)
	for _, key := range keys {
		updates.Go(func() error {
			err := s.updateItem(ctx, &dynamodb.UpdateItemInput{
				TableName:                 &table,
				Key:                       key,
				UpdateExpression:          aws.String("SET #ttl = :at"),
				ConditionExpression:       aws.String("attribute_exists(#pk)"),
				ExpressionAttributeNames:  attributeNames("#ttl", s.config.Attributes.TTL, "#pk", s.config.Attributes.PartitionKey),
				ExpressionAttributeValues: item{":at": numberValue(at.Unix())},
			})
			if errors.As(err, new(*types.ConditionalCheckFailedException)) {
				return nil
			}
			return dynamo.Explain(err, table)
		})
	}
	return updates.Wait()
}
