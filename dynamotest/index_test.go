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

func TestAChangeWithoutDelayWaitsForThoseOfItsItemThatHaveOne(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	kept := func() types.AttributeValue {
		out, err := tab.client.Query(t.Context(), querying("global", "x"))
		require.NoError(t, err)
		if len(out.Items) == 0 {
			return nil
		}
		require.Len(t, out.Items, 1)
		return out.Items[0]["kept"]
	}
	for _, delay := range []time.Duration{time.Second, time.Minute} {
		tab.db.Inject(dynamotest.DelayIndex(delay, delay), dynamotest.Times(1))
	}
	tab.put("a", 1, object{"g": s("x"), "kept": n(1)}) // both delays: a minute
	late := tab.db.Inject(dynamotest.DelayIndex(2*time.Minute, 2*time.Minute), dynamotest.Times(1))
	tab.put("a", 1, object{"g": s("x"), "kept": n(2)})
	require.Equal(t, 1, late.Fired())
	assert.Nil(t, kept())
	tab.db.Clock().Advance(time.Minute)
	assert.Equal(t, n(1), kept())
	// No delay, but the second one is still delayed.
	tab.put("a", 1, object{"g": s("x"), "kept": n(3)})
	assert.Equal(t, n(1), kept())
	tab.db.Clock().Advance(time.Minute)
	assert.Equal(t, n(3), kept())
}

func TestANewIndexHasTheItemsThatFitIt(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.put("fits", 1, object{"new": s("x")})
	tab.put("number", 1, object{"new": n(1)})
	tab.put("empty", 1, object{"new": s("")})
	tab.put("lacks", 1, nil)
	require.NoError(t, done(t.Context(), tab.client.UpdateTable, &dynamodb.UpdateTableInput{
		TableName:            aws.String("tab"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("new"), AttributeType: types.ScalarAttributeTypeS}},
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String("new"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("new"), KeyType: types.KeyTypeHash}},
		}}},
	}))
	out, err := tab.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab"), IndexName: aws.String("new")})
	require.NoError(t, err)
	assert.Equal(t, []object{{"p": s("fits"), "s": n(1), "new": s("x")}}, out.Items)
}

func TestTheSizeOfAnIndexFollowsItsItems(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	size := func() int64 {
		out, err := tab.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("tab")})
		require.NoError(t, err)
		return *out.Table.GlobalSecondaryIndexes[0].IndexSizeBytes
	}
	tab.put("a", 1, object{"g": s("x"), "kept": s("1234567890"), "other": s("x")})
	one := size()
	tab.put("b", 1, object{"g": s("x"), "kept": s("1234567890")})
	assert.Equal(t, 2*one, size())
	tab.put("b", 1, object{"g": s("y")})
	assert.Equal(t, 2*one-int64(len("kept1234567890")), size())
	require.NoError(t, done(t.Context(), tab.client.DeleteItem, deleting("b", 1)))
	assert.Equal(t, one, size())
}

func TestItemCollectionsAreMeasuredOnlyWhereThereAreLocalIndexes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.createSimple("simple", types.ScalarAttributeTypeN)
	for name, want := range map[string]*types.ItemCollectionMetrics{
		"simple": nil,
		"tab":    {ItemCollectionKey: object{"p": s("a")}, SizeEstimateRangeGB: []float64{0, 1}},
	} {
		in := putting("a", 1, nil)
		in.TableName, in.ReturnItemCollectionMetrics = aws.String(name), types.ReturnItemCollectionMetricsSize
		out, err := tab.client.PutItem(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, want, out.ItemCollectionMetrics)
	}
}
