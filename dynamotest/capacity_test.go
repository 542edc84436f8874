package dynamotest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// The rules are those of the Developer Guide: "DynamoDB read and write operations" for items,
// "Using Global Secondary Indexes in DynamoDB" and "Local secondary indexes" for indexes, "Amazon
// DynamoDB Transactions: How it works" for transactions.
func TestCapacityIsConsumedByThePublishedRules(t *testing.T) {
	t.Parallel()
	const key = 1 + 1 + 1 + 2 // bytes of p, its value, s, and a digit
	tests := map[string]struct {
		before func(*table)
		call   func(*table)
		want   []dynamotest.Capacity // nil for none
	}{
		"a write of 1 KB takes one unit": {
			call: func(t *table) { t.put("a", 1, object{"fill": fill(1024, key)}) },
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}},
		},
		"a byte more takes another": {
			call: func(t *table) { t.put("a", 1, object{"fill": fill(1025, key)}) },
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 2}},
		},
		"a smaller item over a larger one is billed as the larger": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(3000, key)}) },
			call:   func(t *table) { t.put("a", 1, nil) },
			want:   []dynamotest.Capacity{{Table: "tab", WriteUnits: 3}},
		},
		"an update is billed by the whole item": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(3000, key)}) },
			call: func(t *table) {
				require.NoError(t, done(t.Context(), t.client.UpdateItem, setting("a", 1, "SET x = :v", object{":v": n(1)})))
			},
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 3}},
		},
		"a deletion is billed by what is deleted": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(3000, key)}) },
			call:   func(t *table) { require.NoError(t, done(t.Context(), t.client.DeleteItem, deleting("a", 1))) },
			want:   []dynamotest.Capacity{{Table: "tab", WriteUnits: 3}},
		},
		"a deletion of nothing takes a unit": {
			call: func(t *table) { require.NoError(t, done(t.Context(), t.client.DeleteItem, deleting("a", 1))) },
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}},
		},
		"a false condition is billed by the item that is there": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(3000, key)}) },
			call: func(t *table) {
				in := putting("a", 1, nil)
				in.ConditionExpression = aws.String("attribute_not_exists(p)")
				require.Error(t, done(t.Context(), t.client.PutItem, in))
			},
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 3}},
		},
		"a consistent read of 4 KB takes one unit": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(4096, key)}) },
			call:   func(t *table) { t.get("a", 1) },
			want:   []dynamotest.Capacity{{Table: "tab", ReadUnits: 1}},
		},
		"a byte more takes another to read": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(4097, key)}) },
			call:   func(t *table) { t.get("a", 1) },
			want:   []dynamotest.Capacity{{Table: "tab", ReadUnits: 2}},
		},
		"an eventually consistent read takes half, also of nothing": {
			call: func(t *table) {
				in := getting("a", 1)
				in.ConsistentRead = nil
				require.NoError(t, done(t.Context(), t.client.GetItem, in))
			},
			want: []dynamotest.Capacity{{Table: "tab", ReadUnits: 0.5}},
		},
		"a query is billed by the sum of the sizes, before the filter": {
			before: func(t *table) {
				for i := range 5 {
					t.put("a", i+1, object{"fill": fill(2000, key)}) // 10,000 bytes in all
				}
			},
			call: func(t *table) {
				in := querying("", "a")
				in.FilterExpression, in.ExpressionAttributeValues[":x"] = aws.String("x = :x"), n(1)
				require.NoError(t, done(t.Context(), t.client.Query, in))
			},
			want: []dynamotest.Capacity{{Table: "tab", ReadUnits: 1.5}},
		},
		"a batch read rounds each item up": {
			before: func(t *table) {
				t.put("a", 1, object{"fill": fill(1500, key)})
				t.put("a", 2, object{"fill": fill(6500, key)})
			},
			call: func(t *table) {
				require.NoError(t, done(t.Context(), t.client.BatchGetItem, &dynamodb.BatchGetItemInput{
					RequestItems: map[string]types.KeysAndAttributes{"tab": {
						Keys: []map[string]types.AttributeValue{keyOf("a", 1), keyOf("a", 2)}, ConsistentRead: aws.Bool(true),
					}},
				}))
			},
			want: []dynamotest.Capacity{{Table: "tab", ReadUnits: 3}},
		},
		"a transaction takes twice as much to write": {
			call: func(t *table) {
				require.NoError(t, done(t.Context(), t.client.TransactWriteItems, adding(1, "a", "b")))
			},
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 4}},
		},
		"a transaction takes twice as much to read": {
			before: func(t *table) { t.put("a", 1, object{"fill": fill(4097, key)}) },
			call: func(t *table) {
				require.NoError(t, done(t.Context(), t.client.TransactGetItems, &dynamodb.TransactGetItemsInput{
					TransactItems: []types.TransactGetItem{
						{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("a", 1)}},
						{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("a", 2)}},
					},
				}))
			},
			want: []dynamotest.Capacity{{Table: "tab", ReadUnits: 6}},
		},
		"an item that comes into an index is one write of what the index keeps": {
			call: func(t *table) { t.put("a", 1, object{"g": s("x"), "fill": fill(3000, key)}) },
			want: []dynamotest.Capacity{{Table: "tab", WriteUnits: 3}, {Table: "tab", Index: "global", WriteUnits: 1}},
		},
		"a change of an index's key is two writes": {
			before: func(t *table) { t.put("a", 1, object{"g": s("x")}) },
			call:   func(t *table) { t.put("a", 1, object{"g": s("y")}) },
			want:   []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}, {Table: "tab", Index: "global", WriteUnits: 2}},
		},
		"a change of what an index keeps is one write": {
			before: func(t *table) { t.put("a", 1, object{"g": s("x"), "kept": n(1)}) },
			call:   func(t *table) { t.put("a", 1, object{"g": s("x"), "kept": n(2)}) },
			want:   []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}, {Table: "tab", Index: "global", WriteUnits: 1}},
		},
		"a change of what an index does not keep costs it nothing": {
			before: func(t *table) { t.put("a", 1, object{"g": s("x")}) },
			call:   func(t *table) { t.put("a", 1, object{"g": s("x"), "other": n(2)}) },
			want:   []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}},
		},
		"an item that leaves an index is one write": {
			before: func(t *table) { t.put("a", 1, object{"g": s("x")}) },
			call:   func(t *table) { t.put("a", 1, nil) },
			want:   []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}, {Table: "tab", Index: "global", WriteUnits: 1}},
		},
		"a query of an index is billed by what the index keeps": {
			before: func(t *table) { t.put("a", 1, object{"g": s("x"), "fill": fill(9000, key)}) },
			call:   func(t *table) { require.NoError(t, done(t.Context(), t.client.Query, querying("global", "x"))) },
			want:   []dynamotest.Capacity{{Table: "tab", Index: "global", ReadUnits: 0.5}},
		},
		"what a local index lacks is read from the table, item by item": {
			before: func(t *table) {
				t.put("a", 1, object{"l": s("x"), "fill": fill(9000, key)})
				t.put("a", 2, object{"l": s("x"), "fill": fill(100, key)})
			},
			call: func(t *table) {
				in := querying("local", "a")
				in.Select = types.SelectAllAttributes
				require.NoError(t, done(t.Context(), t.client.Query, in))
			},
			want: []dynamotest.Capacity{{Table: "tab", Index: "local", ReadUnits: 0.5}, {Table: "tab", ReadUnits: 2}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			if test.before != nil {
				test.before(tab)
			}
			calls := tab.db.Record()
			test.call(tab)

			require.Len(t, calls.Calls(), 1)
			assert.ElementsMatch(t, test.want, calls.Calls()[0].Capacity)
		})
	}
}

func TestConsumedCapacityIsReportedInTotalOrByIndex(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	in := putting("a", 1, object{"g": s("x"), "l": s("y")})
	for asked, want := range map[types.ReturnConsumedCapacity]*types.ConsumedCapacity{
		"":                                nil,
		types.ReturnConsumedCapacityNone:  nil,
		types.ReturnConsumedCapacityTotal: {TableName: aws.String("tab"), CapacityUnits: aws.Float64(3)},
		types.ReturnConsumedCapacityIndexes: {
			TableName: aws.String("tab"), CapacityUnits: aws.Float64(3),
			Table:                  &types.Capacity{CapacityUnits: aws.Float64(1)},
			GlobalSecondaryIndexes: map[string]types.Capacity{"global": {CapacityUnits: aws.Float64(1)}},
			LocalSecondaryIndexes:  map[string]types.Capacity{"local": {CapacityUnits: aws.Float64(1)}},
		},
	} {
		require.NoError(t, done(t.Context(), tab.client.DeleteItem, deleting("a", 1)))
		in.ReturnConsumedCapacity = asked
		out, err := tab.client.PutItem(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, want, out.ConsumedCapacity, asked)
	}
}

func TestATransactionReportsWhetherItReadOrWrote(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	writes := adding(1, "a")
	writes.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	written, err := tab.client.TransactWriteItems(t.Context(), writes)
	require.NoError(t, err)
	assert.Equal(t, []types.ConsumedCapacity{{
		TableName: aws.String("tab"), CapacityUnits: aws.Float64(2), WriteCapacityUnits: aws.Float64(2),
		Table: &types.Capacity{CapacityUnits: aws.Float64(2), WriteCapacityUnits: aws.Float64(2)},
	}}, written.ConsumedCapacity)
	read, err := tab.client.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{
		TransactItems:          []types.TransactGetItem{{Get: &types.Get{TableName: aws.String("tab"), Key: keyOf("a", 1)}}},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	require.NoError(t, err)
	assert.Equal(t, []types.ConsumedCapacity{{
		TableName: aws.String("tab"), CapacityUnits: aws.Float64(2), ReadCapacityUnits: aws.Float64(2),
	}}, read.ConsumedCapacity)
}

func TestAQueryOfAnIndexReportsNothingConsumedOfItsTable(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	in := querying("global", "x")
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := tab.client.Query(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, &types.ConsumedCapacity{
		TableName: aws.String("tab"), CapacityUnits: aws.Float64(0.5),
		Table:                  &types.Capacity{CapacityUnits: aws.Float64(0)},
		GlobalSecondaryIndexes: map[string]types.Capacity{"global": {CapacityUnits: aws.Float64(0.5)}},
	}, out.ConsumedCapacity)
}

func TestABatchReportsWhatItConsumedOfEachTable(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.create("other")
	in := batch("a", "b")
	in.RequestItems["other"] = batch("c").RequestItems["tab"]
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	written, err := tab.client.BatchWriteItem(t.Context(), in)
	require.NoError(t, err)
	assert.ElementsMatch(t, []types.ConsumedCapacity{
		{TableName: aws.String("tab"), CapacityUnits: aws.Float64(2)},
		{TableName: aws.String("other"), CapacityUnits: aws.Float64(1)},
	}, written.ConsumedCapacity)
	keys := batchOfKeys("a", "b")
	keys.RequestItems["other"] = batchOfKeys("c").RequestItems["tab"]
	keys.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	read, err := tab.client.BatchGetItem(t.Context(), keys)
	require.NoError(t, err)
	assert.ElementsMatch(t, []types.ConsumedCapacity{
		{TableName: aws.String("tab"), CapacityUnits: aws.Float64(2)},
		{TableName: aws.String("other"), CapacityUnits: aws.Float64(1)},
	}, read.ConsumedCapacity)
}

func TestATearCostsATransactionNothing(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	in := adding(1, "a", "b")
	in.TransactItems = append([]types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String("tab"), Key: keyOf("c", 1), ConditionExpression: aws.String("attribute_not_exists(p)"),
	}}}, in.TransactItems...)
	tear := tab.db.Inject(dynamotest.Tear(func(context.Context) {}), dynamotest.Times(1))
	calls := tab.db.Record()
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	assert.Equal(t, 1, tear.Fired())
	assert.InDelta(t, 6, calls.Calls()[0].WriteUnits, 0, "the check is billed as well")
}

func TestAnIndexIsBilledByTheLargerAndByBothWhereTheEntryMoves(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	large := s(strings.Repeat("x", 3000))
	calls := tab.db.Record()
	tab.put("a", 1, object{"g": s("x"), "kept": large})
	tab.put("a", 1, object{"g": s("x"), "kept": n(1)})
	tab.put("a", 1, object{"g": s("x"), "kept": large})
	tab.put("a", 1, object{"g": s("y"), "kept": n(1)})
	var units []float64
	for _, call := range calls.Calls() {
		units = append(units, call.WriteUnits)
	}
	assert.Equal(t, []float64{3 + 3, 3 + 3, 3 + 3, 3 + 3 + 1}, units)
}

func TestATransactionIsBilledAlsoIfItWritesNothing(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calls := tab.db.Record()
	failing := adding(1, "a", "b")
	failing.TransactItems[0].Update.ConditionExpression = aws.String("attribute_exists(p)")
	require.Error(t, done(t.Context(), tab.client.TransactWriteItems, failing))
	in := adding(1, "a", "b")
	in.ClientRequestToken, in.ReturnConsumedCapacity = aws.String("token"), types.ReturnConsumedCapacityTotal
	made, err := tab.client.TransactWriteItems(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, []types.ConsumedCapacity{
		{TableName: aws.String("tab"), CapacityUnits: aws.Float64(4), WriteCapacityUnits: aws.Float64(4)},
	}, made.ConsumedCapacity)
	repeated, err := tab.client.TransactWriteItems(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, []types.ConsumedCapacity{
		{TableName: aws.String("tab"), CapacityUnits: aws.Float64(4), ReadCapacityUnits: aws.Float64(4)},
	}, repeated.ConsumedCapacity)
	var units [][2]float64
	for _, call := range calls.Calls() {
		units = append(units, [2]float64{call.ReadUnits, call.WriteUnits})
	}
	assert.Equal(t, [][2]float64{{0, 4}, {0, 4}, {4, 0}}, units, "failed, made, and repeated, which reads")
}

func TestWhatAnIndexLacksIsReadAsConsistentlyAsTheIndex(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.put("a", 1, object{"l": s("x"), "other": n(1)})
	in := querying("local", "a")
	in.Select, in.ConsistentRead = types.SelectAllAttributes, aws.Bool(true)
	calls := tab.db.Record()
	require.NoError(t, done(t.Context(), tab.client.Query, in))
	assert.InDelta(t, 2, calls.Calls()[0].ReadUnits, 0)
}

func TestABatchReadIsBilledForItemsThatAreNotThere(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calls := tab.db.Record()
	require.NoError(t, done(t.Context(), tab.client.BatchGetItem, batchOfKeys("a", "b")))
	assert.InDelta(t, 2, calls.Calls()[0].ReadUnits, 0)
}
