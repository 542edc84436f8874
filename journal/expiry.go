package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
)

// ensureExpiry turns time to live on, which costs nothing where no item has a time. Who enables it at the same time
// gets a ValidationException, so the table is described again.
func (j *engine) ensureExpiry(ctx context.Context, table string) error {
	attribute := j.config.Attributes.TTL
	wait := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(time.Second)), 8), ctx)
	return backoff.Retry(func() error {
		out, err := j.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil {
			return backoff.Permanent(classify(err, table))
		}
		if d := out.TimeToLiveDescription; d != nil {
			switch d.TimeToLiveStatus {
			case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
				if stored := aws.ToString(d.AttributeName); stored != attribute {
					return backoff.Permanent(&DescriptorMismatchError{
						Table: table, Field: "time to live on attribute", Stored: stored, Given: attribute,
					})
				}
				return nil
			case types.TimeToLiveStatusDisabling:
				return errors.New("time to live is being disabled")
			}
		}
		_, err = j.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
		})
		if err == nil {
			return nil
		}
		if code(err) == "ValidationException" || code(err) == "ResourceInUseException" {
			return err
		}
		return backoff.Permanent(classify(err, table))
	}, wait)
}

// needsExpiry refuses to leave events to a time to live that is not on: they would stay for ever.
func (j *engine) needsExpiry(ctx context.Context, removal Removal) error {
	if removal.After <= 0 {
		return nil
	}
	table := j.config.Tables.Journal
	out, err := j.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return classify(err, table)
	}
	if d := out.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == j.config.Attributes.TTL &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	return &ConfigError{Field: "Removal.After", Reason: fmt.Sprintf(
		"needs time to live on attribute %q of table %q, which is off: turn it on, or leave After 0 to delete at once", j.config.Attributes.TTL, table)}
}
