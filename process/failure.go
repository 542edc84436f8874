package process

import (
	"context"
	"errors"
	"strings"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// countFailed counts a failure, unless the manager is being stopped.
func (m *Manager[S]) countFailed(ctx context.Context) {
	if ctx.Err() == nil {
		m.stats.failed.Add(1)
	}
}

// maxFailureBytes is the maximum size of a stored error. It keeps the rows small.
const maxFailureBytes = 500

// keepFailure stores the error of an attempt in its row, unless another manager has leased the row
// since. Row is nil if it could not be leased.
func (m *Manager[S]) keepFailure(ctx context.Context, row item, cause error) {
	if row == nil || ctx.Err() != nil {
		return
	}
	if inner := errors.Unwrap(cause); inner != nil {
		cause = inner // the outer error repeats the keys of the row
	}
	reason := cause.Error()
	if len(reason) > maxFailureBytes {
		reason = strings.ToValidUTF8(reason[:maxFailureBytes], "")
	}
	_, err := m.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(m.config.Table), Key: item{pkey: row[pkey], skey: row[skey]},
		UpdateExpression:          aws.String("SET #f = :reason"),
		ConditionExpression:       aws.String("#d = :leased"),
		ExpressionAttributeNames:  map[string]string{"#f": failureAttribute, "#d": dueAttribute},
		ExpressionAttributeValues: item{":reason": textValue(reason), ":leased": row[dueAttribute]},
	})
	if err != nil && !isConditionFalse(err) {
		m.config.Logger.Info("Cannot store why a timeout or commands failed", watermill.LogFields{"process_type": m.definition.Type(), "err": err})
	}
}
