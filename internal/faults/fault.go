package faults

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Call is a call on its way to DynamoDB.
type Call struct {
	Operation Operation
	Input     any // a pointer such as *dynamodb.QueryInput
	// Send makes the call. The output is a pointer such as *dynamodb.QueryOutput.
	Send func(context.Context) (output any, err error)
}

// Fault stands in for a call and gives its outcome. It runs in the goroutine of the caller.
type Fault func(ctx context.Context, call Call) (output any, err error)

// Times lets a fault happen to the next n calls, and lets later ones pass.
func Times(n int, fault Fault) Fault {
	var used atomic.Int64
	return func(ctx context.Context, call Call) (any, error) {
		if used.Add(1) > int64(n) {
			return call.Send(ctx)
		}
		return fault(ctx, call)
	}
}

// Before does something, then makes the call.
func Before(do func()) Fault {
	return func(ctx context.Context, call Call) (any, error) {
		do()
		return call.Send(ctx)
	}
}

// LoseReply makes the call and breaks the connection before the reply arrives.
func LoseReply() Fault {
	return func(ctx context.Context, call Call) (any, error) {
		if _, err := call.Send(ctx); err != nil {
			return nil, err
		}
		return nil, failed(call, &smithyhttp.RequestSendError{Err: io.ErrUnexpectedEOF})
	}
}

// CancelAfter makes the call, and the context ends before the reply arrives. Cancel ends it.
func CancelAfter(cancel context.CancelFunc) Fault {
	return func(ctx context.Context, call Call) (any, error) {
		if _, err := call.Send(ctx); err != nil {
			return nil, err
		}
		cancel()
		return nil, failed(call, &aws.RequestCanceledError{Err: ctx.Err()})
	}
}

// CancelBefore ends the context when the call is about to go out. Cancel ends it.
func CancelBefore(cancel context.CancelFunc) Fault { return Before(cancel) }

// Refuse makes DynamoDB answer with an error, without an effect.
func Refuse(answer smithy.APIError) Fault {
	return func(_ context.Context, call Call) (any, error) {
		return nil, failed(call, &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
			Err:      answer,
		})
	}
}

// Throttle refuses for want of capacity.
func Throttle() Fault {
	return Refuse(&types.ProvisionedThroughputExceededException{Message: aws.String("more requests than provisioned")})
}

// TransactionConflict refuses a TransactWriteItems because another transaction is under way on its first item.
func TransactionConflict() Fault {
	return func(ctx context.Context, call Call) (any, error) {
		reasons := make([]types.CancellationReason, len(call.Input.(*dynamodb.TransactWriteItemsInput).TransactItems))
		for i := range reasons {
			reasons[i].Code = aws.String("None")
		}
		reasons[0].Code = aws.String("TransactionConflict")
		return Refuse(&types.TransactionCanceledException{
			Message: aws.String("Transaction cancelled"), CancellationReasons: reasons,
		})(ctx, call)
	}
}

// HideFromIndex leaves items out of what queries of an index return, as if it had not caught up with them.
func HideFromIndex(index string, hidden func(item map[string]types.AttributeValue) bool) Fault {
	return func(ctx context.Context, call Call) (any, error) {
		out, err := call.Send(ctx)
		if query, ok := call.Input.(*dynamodb.QueryInput); err == nil && ok && aws.ToString(query.IndexName) == index {
			page := out.(*dynamodb.QueryOutput)
			page.Items = slices.DeleteFunc(page.Items, hidden)
		}
		return out, err
	}
}

// failed is how the SDK reports an error of a call.
func failed(call Call, err error) error {
	return &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: string(call.Operation), Err: err}
}
