package compare

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A database with a wrong reply of any of these kinds must be noticed.
func TestWrongRepliesAreNoticed(t *testing.T) {
	left, right := local(t), local(t)
	for name, broken := range map[string]func(out any, err error) (any, error){
		"an item without an attribute": func(out any, err error) (any, error) {
			if get, ok := out.(*dynamodb.GetItemOutput); ok && len(get.Item) > 3 {
				for name := range get.Item {
					delete(get.Item, name)
					break
				}
			}
			return out, err
		},
		"another number": func(out any, err error) (any, error) {
			if update, ok := out.(*dynamodb.UpdateItemOutput); ok {
				if n, ok := update.Attributes["n1"].(*types.AttributeValueMemberN); ok {
					n.Value += ".0"
				}
			}
			return out, err
		},
		"a table query in another order": func(out any, err error) (any, error) {
			if query, ok := out.(*dynamodb.QueryOutput); ok {
				slices.Reverse(query.Items)
			}
			return out, err
		},
		"a scan that has lost an item": func(out any, err error) (any, error) {
			if scan, ok := out.(*dynamodb.ScanOutput); ok && len(scan.Items) > 1 {
				scan.Items = scan.Items[1:]
			}
			return out, err
		},
		"a page without the key to go on from": func(out any, err error) (any, error) {
			if query, ok := out.(*dynamodb.QueryOutput); ok {
				query.LastEvaluatedKey = nil
			}
			return out, err
		},
		"an empty item for none": func(out any, err error) (any, error) {
			if get, ok := out.(*dynamodb.GetItemOutput); ok && get.Item == nil {
				get.Item = item{}
			}
			return out, err
		},
		"another error": func(out any, err error) (any, error) {
			var failed *types.ConditionalCheckFailedException
			if errors.As(err, &failed) {
				err = &smithy.GenericAPIError{Code: "ValidationException", Message: *failed.Message}
			}
			return out, err
		},
		"a failed condition without the item": func(out any, err error) (any, error) {
			var failed *types.ConditionalCheckFailedException
			if errors.As(err, &failed) {
				failed.Item = nil
			}
			return out, err
		},
		"a reason in another place": func(out any, err error) (any, error) {
			var canceled *types.TransactionCanceledException
			if errors.As(err, &canceled) {
				slices.Reverse(canceled.CancellationReasons)
			}
			return out, err
		},
		"a table without its indexes": func(out any, err error) (any, error) {
			if describe, ok := out.(*dynamodb.DescribeTableOutput); ok {
				for i := range describe.Table.GlobalSecondaryIndexes {
					describe.Table.GlobalSecondaryIndexes[i].KeySchema = nil
				}
			}
			return out, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			runner := &Runner{Left: left, Right: breaking(right, broken), Explain: explained}
			result := NewResult()
			for seed := *firstSeed; len(result.Differences) == 0; seed++ {
				require.NoError(t, runner.Run(t.Context(), NewWorld(seed, 100), result))
				require.Less(t, result.Operations, 2_000, "operations without a difference")
			}
		})
	}
}

func TestADifferenceIsReproducedInFewOperations(t *testing.T) {
	runner := &Runner{Left: local(t), Right: breaking(local(t), func(out any, err error) (any, error) {
		if get, ok := out.(*dynamodb.GetItemOutput); ok {
			delete(get.Item, "s1")
		}
		return out, err
	}), Explain: explained}
	result := NewResult()
	for seed := *firstSeed; len(result.Differences) == 0; seed++ {
		require.NoError(t, runner.Run(t.Context(), NewWorld(seed, 30), result))
	}
	d := runner.Minimise(t.Context(), result.Differences[0])
	assert.Len(t, d.World.Operations, 3, "a table, an item, a read of it:\n%s", d)
}

// breaking returns a client whose replies are changed.
func breaking(client *dynamodb.Client, change func(out any, err error) (any, error)) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("break", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				out, metadata, err := next.HandleInitialize(ctx, in)
				out.Result, err = change(out.Result, err)
				return out, metadata, err
			}), middleware.Before)
		})
	})
}
