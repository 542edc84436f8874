package wire_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

func TestTheSDKReadsBackEveryError(t *testing.T) {
	t.Parallel()
	for _, empty := range []error{
		&types.ConditionalCheckFailedException{},
		&types.IdempotentParameterMismatchException{},
		&types.InternalServerError{},
		&types.ItemCollectionSizeLimitExceededException{},
		&types.LimitExceededException{},
		&types.ProvisionedThroughputExceededException{},
		&types.RequestLimitExceeded{},
		&types.ResourceInUseException{},
		&types.ResourceNotFoundException{},
		&types.TableNotFoundException{},
		&types.ThrottlingException{},
		&types.TransactionCanceledException{},
		&types.TransactionConflictException{},
		&types.TransactionInProgressException{},
	} {
		t.Run(fmt.Sprintf("%T", empty), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 8))
			for range 20 {
				want := reflect.New(reflect.TypeOf(empty).Elem())
				fill(random, want.Elem(), 0)

				got := replyTo(want.Interface().(error))

				require.ErrorAs(t, got, reflect.New(want.Type()).Interface())
				for got != nil && reflect.TypeOf(got) != want.Type() {
					got = errors.Unwrap(got)
				}
				require.Equal(t, want.Interface(), got)
			}
		})
	}
}

func TestTheSDKReadsBackErrorsWithoutAType(t *testing.T) {
	t.Parallel()
	for _, want := range []error{
		apierror.Validation("Item size has exceeded the maximum allowed size"),
		apierror.Serialization(`Unexpected "token" received`),
		apierror.UnknownOperation("An unknown operation was requested."),
	} {
		var api smithy.APIError
		require.ErrorAs(t, replyTo(want), &api)
		var expected smithy.APIError
		require.ErrorAs(t, want, &expected)
		assert.Equal(t, expected.ErrorCode(), api.ErrorCode())
		assert.Equal(t, expected.ErrorMessage(), api.ErrorMessage())
	}
}

func TestEncodeErrorNamesErrorsAsDynamoDBDoes(t *testing.T) {
	t.Parallel()
	const dynamo = "com.amazonaws.dynamodb.v20120810#"
	for _, test := range []struct {
		err    error
		status int
		body   string
	}{
		{
			&types.ConditionalCheckFailedException{
				Message: aws.String("The conditional request failed"),
				Item:    map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "a"}},
			},
			http.StatusBadRequest, `{"__type":"` + dynamo + `ConditionalCheckFailedException","message":"The conditional request failed","Item":{"k":{"S":"a"}}}`,
		},
		{
			&types.TransactionCanceledException{
				Message:             aws.String("Transaction cancelled"),
				CancellationReasons: []types.CancellationReason{{Code: aws.String("None")}, {Code: aws.String("ConditionalCheckFailed"), Message: aws.String("m")}},
			},
			http.StatusBadRequest, `{"__type":"` + dynamo + `TransactionCanceledException","Message":"Transaction cancelled",` +
				`"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"m"}]}`,
		},
		{apierror.Validation("v"), http.StatusBadRequest, `{"__type":"com.amazon.coral.validate#ValidationException","message":"v"}`},
		{apierror.Serialization("s"), http.StatusBadRequest, `{"__type":"com.amazon.coral.service#SerializationException","message":"s"}`},
		{apierror.UnknownOperation("u"), http.StatusBadRequest, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"u"}`},
		{&types.ThrottlingException{Message: aws.String("t")}, http.StatusBadRequest, `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"t"}`},
		{&types.InternalServerError{}, http.StatusInternalServerError, `{"__type":"` + dynamo + `InternalServerError"}`},
		{
			&smithy.GenericAPIError{Code: "ServiceUnavailable", Fault: smithy.FaultServer},
			http.StatusServiceUnavailable, `{"__type":"com.amazon.coral.availability#ServiceUnavailable","message":""}`,
		},
		{fmt.Errorf("put: %w", apierror.Validation("v")), http.StatusBadRequest, `{"__type":"com.amazon.coral.validate#ValidationException","message":"v"}`},
		{errors.New("lost"), http.StatusInternalServerError, `{"__type":"` + dynamo + `InternalServerError","message":"lost"}`},
	} {
		status, body := wire.EncodeError(test.err)
		assert.Equal(t, test.status, status)
		assert.JSONEq(t, test.body, string(body))
	}
}

// replyTo returns the SDK's error for an error reply.
func replyTo(err error) error {
	status, body := wire.EncodeError(err)
	_, got := clientOf(status, body).DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String("table")})
	return got
}
