package dynamotest_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestTheSmallestOfSeveralPageSizesHolds(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{{2, 4}, {4, 2}} {
		tab := newTable(t)
		for i := range 5 {
			tab.put("a", i, nil)
		}
		for _, size := range sizes {
			tab.db.Inject(dynamotest.SmallPages(size))
		}
		for limit, want := range map[*int32]int32{nil: 2, aws.Int32(1): 1, aws.Int32(3): 2} {
			in := querying("", "a")
			in.Limit = limit
			out, err := tab.client.Query(t.Context(), in)
			require.NoError(t, err)
			assert.Equal(t, want, out.Count)
		}
	}
}

func TestDelaysOfOneCallAddUp(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for range 2 {
		tab.db.Inject(dynamotest.Latency(5*time.Millisecond, 5*time.Millisecond))
	}
	began := time.Now()
	tab.get("a", 1)
	assert.GreaterOrEqual(t, time.Since(began), 10*time.Millisecond)
}

func TestAFaultLetsTheFirstCallsPassAndHappensToTheNext(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	throttle := tab.db.Inject(dynamotest.Throttle(), dynamotest.After(2), dynamotest.Times(1))
	var failed []bool
	for range 4 {
		failed = append(failed, done(t.Context(), tab.once().GetItem, getting("a", 1)) != nil)
	}
	assert.Equal(t, []bool{false, false, true, false}, failed)
	assert.Equal(t, 1, throttle.Fired())
}

func TestTheLongestOfSeveralDelaysOfAnIndexHolds(t *testing.T) {
	t.Parallel()
	for _, delays := range [][]time.Duration{{time.Second, time.Minute}, {time.Minute, time.Second}} {
		tab := newTable(t)
		tab.db.Clock().Freeze()
		for _, delay := range delays {
			tab.db.Inject(dynamotest.DelayIndex(delay, delay))
		}
		tab.put("a", 1, object{"g": s("x")})
		tab.db.Clock().Advance(time.Minute - 1)
		out, err := tab.client.Query(t.Context(), querying("global", "x"))
		require.NoError(t, err)
		assert.Empty(t, out.Items)
	}
}

func TestAnIndexLagsByChance(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	lag := tab.db.Inject(dynamotest.DelayIndex(time.Hour, time.Hour), dynamotest.Chance(0.5))
	for i := range 64 {
		tab.put("a", i, object{"g": s("x")})
	}
	out, err := tab.client.Query(t.Context(), querying("global", "x"))
	require.NoError(t, err)
	assert.Equal(t, 64, lag.Fired()+len(out.Items))
	assert.Greater(t, lag.Fired(), 10)
	assert.Less(t, lag.Fired(), 54)
}

func TestAFaultOfAnItemOrAnIndexDoesNotHappenToReadsOfTheTable(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("a", 1)))
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Index("global"))
	client := tab.once()
	require.NoError(t, done(t.Context(), client.Query, querying("", "a")))
	require.NoError(t, done(t.Context(), client.Scan, &dynamodb.ScanInput{TableName: aws.String("tab")}))
	require.NoError(t, done(t.Context(), client.GetItem, getting("a", 2)))
	require.Error(t, done(t.Context(), client.GetItem, getting("a", 1)))
}

func TestTheKeyOfAFaultIsANumberHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Key(object{"s": n("1.0")}))
	in := getting("a", 1)
	in.Key["s"] = n("10e-1")
	require.Error(t, done(t.Context(), tab.once().GetItem, in))
}

func TestTheTableOfAFaultMayBeAnARN(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Table("arn:aws:dynamodb:us-east-1:123456789012:table/tab"))
	require.Error(t, done(t.Context(), tab.once().GetItem, getting("a", 1)))
}

func TestAThrottledIndexPushesBackOnDeletions(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Throttle(), dynamotest.Index("global"))
	var throttled *types.ProvisionedThroughputExceededException
	require.ErrorAs(t, done(t.Context(), tab.once().DeleteItem, deleting("a", 1)), &throttled)
	require.ErrorAs(t, done(t.Context(), tab.once().BatchWriteItem, &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{"tab": {{DeleteRequest: &types.DeleteRequest{Key: keyOf("a", 1)}}}},
	}), &throttled)
}
