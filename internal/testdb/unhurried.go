package testdb

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// Unhurried is a client option that removes the deadlines of operations, so that the limits of a
// small retry budget do not depend on the speed of the machine. An operation still ends when its
// context is canceled.
func Unhurried(o *dynamodb.Options) {
	o.APIOptions = append(slices.Clone(o.APIOptions), func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Unhurried", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			unhurried, cancel := context.WithCancel(context.WithoutCancel(ctx))
			defer cancel()
			defer context.AfterFunc(ctx, func() {
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					cancel()
				}
			})()
			return next.HandleInitialize(unhurried, in)
		}), middleware.Before)
	})
}
