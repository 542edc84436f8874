package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// stale makes eventually consistent reads by key sometimes return earlier results. dynamotest and
// DynamoDB Local always return the latest. The library uses consistent reads, so this only detects
// a read that is not.
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
	out, metadata, err = next.HandleInitialize(ctx, in)
	if err != nil || ctx.Value(besideKey{}) != nil {
		return out, metadata, err
	}
	switch get := in.Parameters.(type) {
	case *dynamodb.GetItemInput:
		if !aws.ToBool(get.ConsistentRead) {
			out.Result = s.earlier("get "+keyText(aws.ToString(get.TableName), get.Key), out.Result)
		}
	case *dynamodb.BatchGetItemInput:
		if reply, ok := out.Result.(*dynamodb.BatchGetItemOutput); ok {
			s.batch(get, reply)
		}
	}
	return out, metadata, err
}

// batch replaces items one by one: a new item may be missing beside the latest ones.
func (s *stale) batch(get *dynamodb.BatchGetItemInput, reply *dynamodb.BatchGetItemOutput) {
	for _, table := range slices.Sorted(maps.Keys(get.RequestItems)) {
		asked := get.RequestItems[table]
		if aws.ToBool(asked.ConsistentRead) {
			continue
		}
		same := func(key map[string]types.AttributeValue) func(map[string]types.AttributeValue) bool {
			return func(it map[string]types.AttributeValue) bool {
				for name, value := range key {
					if !reflect.DeepEqual(it[name], value) {
						return false
					}
				}
				return true
			}
		}
		var items []map[string]types.AttributeValue
		for _, key := range asked.Keys {
			if slices.ContainsFunc(reply.UnprocessedKeys[table].Keys, same(key)) {
				continue
			}
			var now map[string]types.AttributeValue
			if i := slices.IndexFunc(reply.Responses[table], same(key)); i >= 0 {
				now = reply.Responses[table][i]
			}
			if it, _ := s.earlier("batch "+keyText(table, key), now).(map[string]types.AttributeValue); it != nil {
				items = append(items, it)
			}
		}
		reply.Responses[table] = items
	}
}

// earlier sometimes returns an earlier result instead of the current one, which may be that there
// was no item.
func (s *stale) earlier(key string, now any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.seen[key]; ok && s.random.IntN(2) == 0 {
		return before
	}
	s.seen[key] = now
	return now
}

func keyText(table string, key map[string]types.AttributeValue) string {
	for _, name := range slices.Sorted(maps.Keys(key)) {
		table += fmt.Sprintf(" %+v", key[name])
	}
	return table
}
