package units

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Send makes a request, and counts it if the context has a counter. To count it, Send asks DynamoDB
// for the consumed capacity on a copy of the input. A request that fails counts as a request
// without units, because its reply has no capacity. If the limit of the context is reached, Send
// returns [ErrLimit] and makes no request.
func Send[In, Out any](
	ctx context.Context, in *In, request func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), options []func(*dynamodb.Options),
) (*Out, error) {
	counter := counterOf(ctx)
	if counter == nil {
		return request(ctx, in, options...)
	}
	if counter.isSpent() {
		return nil, ErrLimit
	}
	out, err := request(ctx, asking(in), options...)
	if err != nil {
		counter.add(0, 0)
		return out, err
	}
	counter.add(Consumed(out))
	return out, nil
}
