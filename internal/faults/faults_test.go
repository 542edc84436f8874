package faults_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/faults"
	"github.com/millrace-dev/millrace/journal"
)

// store remembers which calls arrived, and refuses those whose context has ended.
type store struct {
	journal.Client
	arrived []string
	items   []map[string]types.AttributeValue
}

func (s *store) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	s.arrived = append(s.arrived, "Query")
	return &dynamodb.QueryOutput{Items: s.items}, nil
}

func (s *store) TransactWriteItems(
	ctx context.Context, _ *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.arrived = append(s.arrived, "TransactWriteItems")
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

var twoItems = &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, 2)}

func TestWithoutFaultsEveryCallArrivesAndIsCounted(t *testing.T) {
	t.Parallel()
	behind := &store{}
	client := faults.New(behind)

	out, err := client.Query(t.Context(), &dynamodb.QueryInput{})
	require.NoError(t, err)
	assert.NotNil(t, out)
	_, err = client.TransactWriteItems(t.Context(), twoItems)
	require.NoError(t, err)

	assert.Equal(t, []string{"Query", "TransactWriteItems"}, behind.arrived)
	assert.Equal(t, map[faults.Operation]int{faults.Query: 1, faults.TransactWriteItems: 1}, client.Calls())
	client.Reset()
	assert.Empty(t, client.Calls())
}

func TestEachFaultHasItsEffectAndItsError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   func(context.CancelFunc) faults.Fault
		arrives bool
		fails   func(error) bool
	}{
		"a lost reply": {
			func(context.CancelFunc) faults.Fault { return faults.LoseReply() }, true,
			func(err error) bool { return err != nil && !errors.Is(err, context.Canceled) },
		},
		"a context that ends after the call": {
			faults.CancelAfter, true,
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		"a context that ends before the call": {
			faults.CancelBefore, false,
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		"throttling": {
			func(context.CancelFunc) faults.Fault { return faults.Throttle() }, false,
			func(err error) bool {
				var throttled *types.ProvisionedThroughputExceededException
				return errors.As(err, &throttled)
			},
		},
		"another transaction": {
			func(context.CancelFunc) faults.Fault { return faults.TransactionConflict() }, false,
			func(err error) bool {
				var canceled *types.TransactionCanceledException
				return errors.As(err, &canceled) && len(canceled.CancellationReasons) == 2 &&
					aws.ToString(canceled.CancellationReasons[0].Code) == "TransactionConflict"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			behind := &store{}
			client := faults.New(behind)
			client.Inject(faults.TransactWriteItems, test.fault(cancel))

			_, err := client.TransactWriteItems(ctx, twoItems)
			assert.True(t, test.fails(err), "error: %v", err)
			assert.Equal(t, test.arrives, len(behind.arrived) == 1, "arrived: %v", behind.arrived)
		})
	}
}

func TestAFaultHappensAsOftenAsItShould(t *testing.T) {
	t.Parallel()
	client := faults.New(&store{})
	remove := client.Inject(faults.TransactWriteItems, faults.Throttle())
	client.Inject(faults.TransactWriteItems, faults.Times(1, faults.LoseReply()))
	remove()

	_, err := client.TransactWriteItems(t.Context(), twoItems)
	require.Error(t, err)
	_, err = client.TransactWriteItems(t.Context(), twoItems)
	require.NoError(t, err)
	assert.Equal(t, 2, client.Calls()[faults.TransactWriteItems])
}

func TestItemsAreHiddenFromTheIndexTheyAreMissingIn(t *testing.T) {
	t.Parallel()
	item := func(key string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"skey": &types.AttributeValueMemberS{Value: key}}
	}
	client := faults.New(&store{items: []map[string]types.AttributeValue{item("a"), item("b")}})
	client.Inject(faults.Query, faults.HideFromIndex("tail", func(it map[string]types.AttributeValue) bool {
		return it["skey"].(*types.AttributeValueMemberS).Value == "a"
	}))

	tail, err := client.Query(t.Context(), &dynamodb.QueryInput{IndexName: aws.String("tail")})
	require.NoError(t, err)
	assert.Len(t, tail.Items, 1)
}
