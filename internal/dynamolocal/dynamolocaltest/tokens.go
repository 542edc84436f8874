package dynamolocaltest

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// maxToken is the largest length of a ClientRequestToken, in bytes.
const maxToken = 36

// withOwnTokens makes the ClientRequestTokens of a client differ from those of other tests. The
// emulator keeps tokens for ten minutes, even after the tables are deleted. It would treat the
// transaction of a test as a repetition of an earlier test's transaction with the same token.
func withOwnTokens(test string) func(*dynamodb.Options) {
	own := middleware.InitializeMiddlewareFunc("OwnTokens", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		t, ok := in.Parameters.(*dynamodb.TransactWriteItemsInput)
		if ok && t != nil && t.ClientRequestToken != nil && len(*t.ClientRequestToken) <= maxToken {
			changed := *t
			token := fmt.Sprintf("%x", sha256.Sum256([]byte(test+*t.ClientRequestToken)))[:maxToken]
			changed.ClientRequestToken = &token
			in.Parameters = &changed
		}
		return next.HandleInitialize(ctx, in)
	})
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(own, middleware.After)
		})
	}
}
