package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
)

// ExpiryClient is the part of *dynamodb.Client that turns time to live on.
type ExpiryClient interface {
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// EnsureExpiry turns time to live on for an attribute of a table. It does not wait until DynamoDB
// deletes items: that begins after up to an hour, and expired items are deleted within days.
// EnsureExpiry may be called again, and by several processes at once. If another process was
// faster, DynamoDB returns a ValidationException, and EnsureExpiry describes the table again. It
// repeats failed requests like [Start].
//
// Errors: [*MismatchError] if time to live is on for another attribute, [ErrTableMissing],
// [ErrAccess].
func EnsureExpiry(ctx context.Context, client ExpiryClient, table, attribute string) error {
	return Start(ctx, func(ctx context.Context) error { return ensureExpiry(ctx, client, table, attribute) })
}

func ensureExpiry(ctx context.Context, client ExpiryClient, table, attribute string) error {
	wait := backoff.WithContext(backoff.WithMaxRetries(retry.Pauses(20*time.Millisecond, time.Second, 0), 8), ctx)
	return backoff.Retry(func() error {
		out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil {
			return backoff.Permanent(Explain(err, table))
		}
		if d := out.TimeToLiveDescription; d != nil {
			switch d.TimeToLiveStatus {
			case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
				if stored := aws.ToString(d.AttributeName); stored != attribute {
					return backoff.Permanent(&MismatchError{
						Table: table, Field: "time to live on attribute", Stored: stored, Given: attribute,
					})
				}
				return nil
			case types.TimeToLiveStatusDisabling:
				return errors.New("time to live is being disabled")
			}
		}
		_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
		})
		if err == nil {
			return nil
		}
		if Code(err) == "ValidationException" || Code(err) == "ResourceInUseException" {
			return err
		}
		return backoff.Permanent(Explain(err, table))
	}, wait)
}
