package engine

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// UpdateTimeToLive sets the attribute with the expiry time, or turns time to live off. It takes
// effect immediately, and can be repeated at any time. DynamoDB takes up to an hour, and meanwhile
// refuses another change.
func (db *Database) UpdateTimeToLive(in *dynamodb.UpdateTimeToLiveInput) (*dynamodb.UpdateTimeToLiveOutput, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	if in.TimeToLiveSpecification == nil {
		return nil, required("timeToLiveSpecification")
	}
	t, err := db.named(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := checkTimeToLive(in.TimeToLiveSpecification); err != nil {
		return nil, err
	}
	if db.lock(t) != nil {
		return nil, tableNotFound(t.name)
	}
	defer t.mu.Unlock()
	spec := in.TimeToLiveSpecification
	if err := t.setTimeToLive(*spec.AttributeName, *spec.Enabled, db.config.Now()); err != nil {
		return nil, err
	}
	return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: &types.TimeToLiveSpecification{
		AttributeName: aws.String(*spec.AttributeName), Enabled: aws.Bool(*spec.Enabled),
	}}, nil
}

func checkTimeToLive(spec *types.TimeToLiveSpecification) error {
	var c constraints
	c.text("timeToLiveSpecification.attributeName", spec.AttributeName, 1)
	c.required("timeToLiveSpecification.enabled", spec.Enabled != nil)
	return c.err()
}

func (t *table) setTimeToLive(attribute string, enabled bool, now time.Time) error {
	switch {
	case !enabled && t.expiry == nil:
		return apierror.Validation("TimeToLive is already disabled")
	case t.expiry != nil && t.expiry.attribute != attribute:
		return apierror.Validation("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.expiry.attribute)
	case enabled && t.expiry != nil:
		return apierror.Validation("TimeToLive is already enabled")
	case enabled:
		t.expiry = newExpiry(strings.Clone(attribute))
		t.indexExpiry(now)
	default:
		t.expiry = nil
	}
	return nil
}

// DescribeTimeToLive returns the attribute with the expiry time.
func (db *Database) DescribeTimeToLive(in *dynamodb.DescribeTimeToLiveInput) (*dynamodb.DescribeTimeToLiveOutput, error) {
	t, err := db.named(in.TableName)
	if err != nil {
		return nil, err
	}
	if db.rlock(t) != nil {
		return nil, tableNotFound(t.name)
	}
	defer t.mu.RUnlock()
	d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	if t.expiry != nil {
		d.TimeToLiveStatus = types.TimeToLiveStatusEnabled
		d.AttributeName = aws.String(t.expiry.attribute)
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
}
