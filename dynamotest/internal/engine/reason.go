package engine

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// none is the code for an action that did not cause the cancellation.
const none = "None"

var noneCode = none // all such reasons share it

func reason(code, message string, item value.Item) types.CancellationReason {
	return types.CancellationReason{Code: &code, Message: &message, Item: item}
}

// reasonOf returns the reason for the error of one action in a cancelled transaction.
func reasonOf(err error) types.CancellationReason {
	if err == nil {
		return types.CancellationReason{Code: &noneCode}
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return reason("ConditionalCheckFailed", failed.ErrorMessage(), failed.Item)
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		return reason("ValidationError", api.ErrorMessage(), nil)
	}
	return reason("InternalServerError", err.Error(), nil)
}

// Cancelled returns the error of a transaction that was cancelled because of some of its actions.
func Cancelled(actions int, hit []int, code, message string) error {
	reasons := make([]types.CancellationReason, actions)
	for i := range reasons {
		reasons[i] = reasonOf(nil)
	}
	for _, i := range hit {
		reasons[i] = reason(code, message, nil)
	}
	return cancellation(reasons)
}

func cancellation(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = *r.Code
	}
	return &types.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}
