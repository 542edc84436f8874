package dynamotest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestCallsOnOneItemDrawAnew(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	throttle := tab.db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.5), dynamotest.On("GetItem"))
	for range 64 {
		_ = done(t.Context(), tab.once().GetItem, getting("a", 1))
	}
	assert.Greater(t, throttle.Fired(), 10)
	assert.Less(t, throttle.Fired(), 54)
}

func TestFaultsDrawApart(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for range 2 {
		tab.db.Inject(dynamotest.Latency(0, 0), dynamotest.Chance(0.5))
	}
	calls := tab.db.Record()
	both := map[int]int{}
	for i := range 64 {
		require.NoError(t, done(t.Context(), tab.client.GetItem, getting("a", i)))
	}
	for _, call := range calls.Calls() {
		both[len(call.Faults)]++
	}
	assert.Len(t, both, 3, "none, one or both happen")
}

func TestAPageDrawsTheSameInWhateverOrderPagesAreRead(t *testing.T) {
	t.Parallel()
	failed := func(backward bool) map[int]bool {
		tab := newTable(t)
		tab.db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.5))
		failed := map[int]bool{}
		for i := range 64 {
			if backward {
				i = 63 - i
			}
			query := querying("", "a")
			query.ExclusiveStartKey = keyOf("a", i)
			failed[i] = done(t.Context(), tab.once().Query, query) != nil
			scan := &dynamodb.ScanInput{TableName: aws.String("tab"), ExclusiveStartKey: keyOf("a", i)}
			failed[100+i] = done(t.Context(), tab.once().Scan, scan) != nil
		}
		return failed
	}
	assert.Equal(t, failed(false), failed(true))
}

func TestWhichItemsComeBackUnprocessedIsDrawn(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Unprocessed(1))
	left := map[string]bool{}
	for range 64 {
		out, err := tab.client.BatchWriteItem(t.Context(), batch("a", "b", "c"))
		require.NoError(t, err)
		require.Len(t, out.UnprocessedItems["tab"], 1)
		left[out.UnprocessedItems["tab"][0].PutRequest.Item["p"].(*types.AttributeValueMemberS).Value] = true
	}
	assert.Len(t, left, 3)
}
