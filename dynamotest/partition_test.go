package dynamotest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// newLimited returns a table with limited partitions, and a clock that stands still.
func newLimited(t *testing.T, write, read float64) *table {
	t.Helper()
	tab := newTable(t, dynamotest.WithPartitionLimits(write, read))
	tab.db.Clock().Freeze()
	tab.client = tab.once()
	return tab
}

func requireThrottled(t *testing.T, err error, why ...any) {
	t.Helper()
	var throttled *types.ProvisionedThroughputExceededException
	require.ErrorAs(t, err, &throttled, why...)
}

// write puts an item of one write unit.
func (t *table) write(p string, number int, more object) error {
	return done(t.Context(), t.client.PutItem, putting(p, number, more))
}

func TestAPartitionTakesItsWriteUnitsASecond(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 10, 0)
	for i := range 10 {
		require.NoError(t, tab.write("a", i, nil))
	}
	requireThrottled(t, tab.write("a", 10, nil))
	require.NoError(t, tab.write("b", 1, nil), "another partition")
	assert.Empty(t, tab.get("a", 10), "a call that is throttled has no effect")

	tab.db.Clock().Advance(time.Second / 10)
	require.NoError(t, tab.write("a", 10, nil), "a unit has come back")
	requireThrottled(t, tab.write("a", 11, nil))

	tab.db.Clock().Advance(time.Hour)
	for i := range 10 {
		require.NoError(t, tab.write("a", i, nil))
	}
	requireThrottled(t, tab.write("a", 10, nil), "what was not used is lost after a second")
}

func TestAPartitionTakesItsReadUnitsASecond(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(t *table) error{ // of one unit
		"GetItem": func(t *table) error { return done(t.Context(), t.client.GetItem, getting("a", 1)) },
		"Query": func(t *table) error {
			in := querying("", "a")
			in.ConsistentRead = aws.Bool(true)
			return done(t.Context(), t.client.Query, in)
		},
		"Query of a local index": func(t *table) error {
			in := querying("local", "a")
			in.ConsistentRead = aws.Bool(true)
			return done(t.Context(), t.client.Query, in)
		},
		"Scan": func(t *table) error {
			return done(t.Context(), t.client.Scan, &dynamodb.ScanInput{TableName: aws.String("tab"), ConsistentRead: aws.Bool(true)})
		},
		"BatchGetItem": func(t *table) error {
			return done(t.Context(), t.client.BatchGetItem, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{"tab": {Keys: []object{keyOf("a", 1)}, ConsistentRead: aws.Bool(true)}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newLimited(t, 0, 3)
			tab.put("a", 1, object{"l": s("x")})
			for range 3 {
				require.NoError(t, read(tab))
			}
			requireThrottled(t, read(tab))
			tab.db.Clock().Advance(time.Second/3 + 1)
			require.NoError(t, read(tab))
			requireThrottled(t, read(tab))
		})
	}
}

func TestAnIndexPartitionPushesBackOnItsTable(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 5, 1)
	for i := range 5 {
		require.NoError(t, tab.write(fmt.Sprint("a", i), 1, object{"g": s("hot")}))
	}
	recording := tab.db.Record()
	err := tab.write("b", 1, object{"g": s("hot")})
	requireThrottled(t, err)
	require.ErrorContains(t, err, "global secondary indexes")
	call := recording.Calls("PutItem")[0]
	assert.Equal(t, []dynamotest.Partition{{Table: "tab", Index: "global", Key: s("hot")}}, call.Exhausted)
	assert.Zero(t, call.WriteUnits)

	require.NoError(t, tab.write("b", 1, object{"g": s("cool")}), "another partition of the index")
	require.NoError(t, tab.write("b", 2, nil), "no entry in the index")
	require.NoError(t, tab.write("a0", 1, object{"g": s("hot"), "other": n(1)}), "the entry stays as it is")
	requireThrottled(t, tab.write("b", 1, object{"g": s("hot")}), "an entry that moves there")
	requireThrottled(t, done(t.Context(), tab.client.DeleteItem, deleting("a1", 1)), "an entry that goes")
	require.NoError(t, done(t.Context(), tab.client.Query, querying("global", "hot")), "reads have units of their own")
	require.NoError(t, done(t.Context(), tab.client.Query, querying("global", "hot")))
	requireThrottled(t, done(t.Context(), tab.client.Query, querying("global", "hot")))
	require.NoError(t, done(t.Context(), tab.client.Query, querying("global", "cool")))
}

func TestALocalIndexIsInThePartitionOfItsTable(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 4, 0)
	require.NoError(t, tab.write("a", 1, object{"l": s("x")}))
	require.NoError(t, tab.write("a", 2, object{"l": s("x")}))
	requireThrottled(t, tab.write("a", 3, nil))
}

func TestATransactionIsCancelledForTheActionsWhosePartitionIsExhausted(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 4, 0)
	require.NoError(t, tab.write("a", 1, nil))
	require.NoError(t, tab.write("a", 2, nil))
	require.NoError(t, tab.write("a", 3, nil))
	recording := tab.db.Record()

	err := done(t.Context(), tab.client.TransactWriteItems, adding(1, "b", "a", "c"))

	var cancelled *types.TransactionCanceledException
	require.ErrorAs(t, err, &cancelled)
	var codes []string
	for _, reason := range cancelled.CancellationReasons {
		codes = append(codes, *reason.Code)
	}
	assert.Equal(t, []string{"None", "ProvisionedThroughputExceeded", "None"}, codes)
	call := recording.Calls("TransactWriteItems")[0]
	assert.Zero(t, call.WriteUnits)
	assert.Equal(t, []dynamotest.Partition{{Table: "tab", Key: s("a")}}, call.Exhausted)
	assert.Empty(t, tab.amount("b"))
	for range 2 {
		require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "b")), "it has used nothing of b")
	}
	require.Error(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "b")))
}

func TestATransactionOfReadsIsCancelledForThoseWhosePartitionIsExhausted(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 0, 3)
	get := func(p string) types.TransactGetItem {
		return types.TransactGetItem{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf(p, 1)}}
	}
	in := &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("a"), get("b")}}
	tab.get("b", 1)
	tab.get("b", 1)

	var cancelled *types.TransactionCanceledException
	require.ErrorAs(t, done(t.Context(), tab.client.TransactGetItems, in), &cancelled)
	assert.Equal(t, "None", *cancelled.CancellationReasons[0].Code)
	assert.Equal(t, "ProvisionedThroughputExceeded", *cancelled.CancellationReasons[1].Code)

	tab.db.Clock().Advance(time.Second)
	require.NoError(t, done(t.Context(), tab.client.TransactGetItems, in))
}

func TestAFalseConditionUsesAPartitionToo(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 3, 0)
	in := putting("a", 1, nil)
	in.ConditionExpression = aws.String("attribute_exists(p)")
	transaction := adding(1, "a")
	transaction.TransactItems[0].Update.ConditionExpression = aws.String("attribute_exists(p)")
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, done(t.Context(), tab.client.PutItem, in), &failed)
	require.ErrorContains(t, done(t.Context(), tab.client.TransactWriteItems, transaction), "ConditionalCheckFailed")
	requireThrottled(t, done(t.Context(), tab.client.PutItem, in))
	require.ErrorContains(t, done(t.Context(), tab.client.TransactWriteItems, transaction), "ProvisionedThroughputExceeded")
}

func TestItemsOfABatchComeBackWherePartitionsAreExhausted(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 2, 2)
	put := func(p string, number int) types.WriteRequest {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: keyOf(p, number)}}
	}
	writing := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		"tab": {put("a", 1), put("b", 1), put("a", 2), put("a", 3)},
	}}
	written, err := tab.client.BatchWriteItem(t.Context(), writing)
	require.NoError(t, err)
	assert.Equal(t, map[string][]types.WriteRequest{"tab": {put("a", 3)}}, written.UnprocessedItems)
	writing.RequestItems = written.UnprocessedItems
	requireThrottled(t, done(t.Context(), tab.client.BatchWriteItem, writing), "nothing of it")

	reading := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"tab": {Keys: []object{keyOf("a", 1), keyOf("a", 2), keyOf("b", 1), keyOf("a", 3)}, ConsistentRead: aws.Bool(true)},
	}}
	read, err := tab.client.BatchGetItem(t.Context(), reading)
	require.NoError(t, err)
	assert.Equal(t, []object{keyOf("a", 3)}, read.UnprocessedKeys["tab"].Keys)
	assert.Len(t, read.Responses["tab"], 3)
	reading.RequestItems = read.UnprocessedKeys
	requireThrottled(t, done(t.Context(), tab.client.BatchGetItem, reading))
}

func TestAPartitionOwesWhatACallNeedsBeyondASecond(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 2, 0)
	large := object{"fill": fill(4<<10, len("p")+len("a")+len("s")+2)} // 4 units
	require.NoError(t, tab.write("a", 1, large))
	tab.db.Clock().Advance(time.Second)
	requireThrottled(t, tab.write("a", 2, nil), "it still owes")
	tab.db.Clock().Advance(time.Second)
	require.NoError(t, tab.write("a", 2, nil))
	requireThrottled(t, tab.write("a", 1, large), "it is not full")
}

func TestBucketsThatAreFullAgainAreForgotten(t *testing.T) {
	t.Parallel()
	tab := newLimited(t, 1, 0)
	for round := range 3 {
		for i := range 2_000 {
			require.NoError(t, tab.write(fmt.Sprint(i), round, nil))
		}
		requireThrottled(t, tab.write("7", round, nil), "one that is not full is kept")
		tab.db.Clock().Advance(time.Second)
	}
}

func TestPartitionLimitsAreNotNegative(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { dynamotest.WithPartitionLimits(-1, 0) })
}
