package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// stale makes a GetItem that does not ask for a consistent read give, at times, what one gave before: dynamotest and
// DynamoDB Local always give the latest. The library does ask, so this matters on the day when it forgets to.
type stale struct {
	mu     sync.Mutex
	random *rand.Rand
	seen   map[string]any
}

func (s *stale) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("SoakStaleReads", s.handle), middleware.Before)
}

func (s *stale) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	get, ok := in.Parameters.(*dynamodb.GetItemInput)
	if !ok || aws.ToBool(get.ConsistentRead) {
		return next.HandleInitialize(ctx, in)
	}
	key := aws.ToString(get.TableName)
	for _, name := range slices.Sorted(maps.Keys(get.Key)) {
		key += fmt.Sprintf(" %+v", get.Key[name])
	}
	if out.Result, ok = s.earlier(key); ok {
		return out, metadata, nil
	}
	if out, metadata, err = next.HandleInitialize(ctx, in); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[key] = out.Result
	}
	return out, metadata, err
}

func (s *stale) earlier(key string) (result any, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, ok = s.seen[key]
	return result, ok && s.random.IntN(2) == 0
}
