package table

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
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// expiresAtOnce is the number of requests that ExpireAll makes at the same time.
const expiresAtOnce = 16

// NeedsExpiry returns an error if events should expire but time to live is off: they would stay
// forever.
func (t *Table) NeedsExpiry(ctx context.Context, options journaltype.RemoveOptions) error {
	if options.After <= 0 {
		return nil
	}
	name := t.Config.Tables.Journal
	out, err := t.Client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return dynamo.Explain(err, name)
	}
	if d := out.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == t.Config.Attributes.TTL &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	return &journaltype.ConfigError{Field: "RemoveOptions.After", Reason: fmt.Sprintf(
		"needs time to live on attribute %q of table %q, which is off: turn it on, or leave After 0 to delete at once", t.Config.Attributes.TTL, name)}
}

// ExpireAll sets the time to live of items. It makes 16 requests at a time, because a batch request
// cannot do this. It does not create items that are already gone.
func (t *Table) ExpireAll(ctx context.Context, name string, keys []Item, at time.Time) error {
	updates, ctx := errgroup.WithContext(ctx)
	updates.SetLimit(expiresAtOnce)
	for _, key := range keys {
		updates.Go(func() error {
			err := t.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName:                 &name,
				Key:                       key,
				UpdateExpression:          aws.String("SET #ttl = :at"),
				ConditionExpression:       aws.String("attribute_exists(#pk)"),
				ExpressionAttributeNames:  AttributeNames("#ttl", t.Config.Attributes.TTL, "#pk", t.Config.Attributes.PartitionKey),
				ExpressionAttributeValues: Item{":at": NumberValue(at.Unix())},
			})
			if errors.As(err, new(*types.ConditionalCheckFailedException)) {
				return nil
			}
			return dynamo.Explain(err, name)
		})
	}
	return updates.Wait()
}
