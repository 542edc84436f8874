package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// needsExpiry refuses to leave events to a time to live that is not on: they would stay forever.
func (j *engine) needsExpiry(ctx context.Context, removal Removal) error {
	if removal.After <= 0 {
		return nil
	}
	table := j.config.Tables.Journal
	out, err := j.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return dynamo.Explain(err, table)
	}
	if d := out.TimeToLiveDescription; d != nil && aws.ToString(d.AttributeName) == j.config.Attributes.TTL &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	return &ConfigError{Field: "Removal.After", Reason: fmt.Sprintf(
		"needs time to live on attribute %q of table %q, which is off: turn it on, or leave After 0 to delete at once", j.config.Attributes.TTL, table)}
}
