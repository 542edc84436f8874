package dynamotest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestATokenTellsTypesOfValuesApart(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	putting := func(v types.AttributeValue) *dynamodb.TransactWriteItemsInput {
		return &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("token"),
			TransactItems: []types.TransactWriteItem{{Put: &types.Put{
				TableName: aws.String("tab"), Item: object{"p": s("a"), "s": n(1), "x": v},
			}}},
		}
	}
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, putting(s("1"))))
	var mismatch *types.IdempotentParameterMismatchException
	require.ErrorAs(t, done(t.Context(), tab.client.TransactWriteItems, putting(n("1"))), &mismatch)
}

func TestATransactionHasUpTo4Megabytes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	writes, reads := &dynamodb.TransactWriteItemsInput{}, &dynamodb.TransactGetItemsInput{}
	for i := range 11 {
		p := fmt.Sprint(i)
		in := putting(p, 1, object{"fill": s(strings.Repeat("x", 400_000))})
		require.NoError(t, done(t.Context(), tab.client.PutItem, in))
		writes.TransactItems = append(writes.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: in.TableName, Item: in.Item}})
		reads.TransactItems = append(reads.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: in.TableName, Key: keyOf(p, 1)}})
	}
	require.ErrorContains(t, done(t.Context(), tab.client.TransactWriteItems, writes), "4MB")
	require.ErrorContains(t, done(t.Context(), tab.client.TransactGetItems, reads), "4MB")
	writes.TransactItems, reads.TransactItems = writes.TransactItems[:10], reads.TransactItems[:10]
	writes.ClientRequestToken = nil // the SDK has set it
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, writes))
	require.NoError(t, done(t.Context(), tab.client.TransactGetItems, reads))
}

func TestNothingIsWrittenTwiceByOneRequest(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	require.ErrorContains(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", "a")), "multiple operations on one item")
	deletions := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"tab": {
		{DeleteRequest: &types.DeleteRequest{Key: keyOf("a", 1)}}, {DeleteRequest: &types.DeleteRequest{Key: keyOf("a", 1)}},
	}}}
	require.ErrorContains(t, done(t.Context(), tab.client.BatchWriteItem, deletions), "duplicates")
	deletions.RequestItems["tab"][1] = batch("a").RequestItems["tab"][0]
	require.ErrorContains(t, done(t.Context(), tab.client.BatchWriteItem, deletions), "duplicates")
}

func TestWhatATransactionHasWrittenAnotherMayHold(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	client := tab.once()
	// The first transaction stops after it has written one of its two items. A second transaction
	// then takes that item and holds it, while the first one ends.
	torn, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	tab.db.Inject(dynamotest.Tear(func(context.Context) {
		close(torn)
		<-end
	}), dynamotest.Times(1))
	go func() { ended <- done(t.Context(), client.TransactWriteItems, adding(1, "a", "b")) }()
	<-torn
	written := "a"
	if tab.amount("a") == "" {
		written = "b"
	}
	tab.db.Inject(dynamotest.Hold(func(ctx context.Context) {
		close(end)
		assert.NoError(t, <-ended)
		var conflict *types.TransactionConflictException
		assert.ErrorAs(t, done(ctx, client.PutItem, putting(written, 1, nil)), &conflict, "it is held by the second")
	}), dynamotest.Times(1))
	require.NoError(t, done(t.Context(), client.TransactWriteItems, adding(1, written)))
	assert.Equal(t, "2", tab.amount(written))
}

func TestATransactionMayNameItsTablesInAnyOrder(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.create("another")
	in := adding(1, "a", "b", "c")
	in.TransactItems[1].Update.TableName = aws.String("another") // tab, another, tab
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	assert.Equal(t, "1", tab.amount("a"))
	assert.Empty(t, tab.get("b", 1))
}

func TestAConditionCheckMeetsATransactionUnderWay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	check := adding(1, "b")
	check.TransactItems = append(check.TransactItems, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String("tab"), Key: keyOf("a", 1), ConditionExpression: aws.String("attribute_not_exists(p)"),
	}})
	tab.db.Inject(dynamotest.Hold(func(ctx context.Context) {
		var cancelled *types.TransactionCanceledException
		if assert.ErrorAs(t, done(ctx, tab.once().TransactWriteItems, check), &cancelled) {
			assert.Equal(t, "None", *cancelled.CancellationReasons[0].Code)
			assert.Equal(t, "TransactionConflict", *cancelled.CancellationReasons[1].Code)
		}
	}), dynamotest.Times(1))
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, adding(1, "a")))
}
