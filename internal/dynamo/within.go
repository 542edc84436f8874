package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/units"
)

// ReplyLimit is the time limit of a request, including the SDK's retries. Without it the SDK waits
// forever for a reply over a dead connection.
const ReplyLimit = 10 * time.Second

// ErrNoReply reports that a request had no reply within [ReplyLimit].
var ErrNoReply = errors.New("no reply within 10 seconds")

// Within makes a request with units.Send, and ends it after [ReplyLimit] with [ErrNoReply]. If ctx
// ends, it returns the error of the request.
func Within[In, Out any](
	ctx context.Context, in *In, request func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), options []func(*dynamodb.Options),
) (*Out, error) {
	once, cancel := context.WithTimeoutCause(ctx, ReplyLimit, ErrNoReply)
	defer cancel()
	out, err := units.Send(once, in, request, options)
	if err != nil && context.Cause(once) == ErrNoReply { //nolint:errorlint // it is the cause itself
		err = fmt.Errorf("%w: %v", ErrNoReply, err) //nolint:errorlint // not the end of their context
	}
	return out, err
}
