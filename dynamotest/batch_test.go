package dynamotest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestABatchHasItsLimits(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	names := make([]string, 101)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	require.NoError(t, done(t.Context(), tab.client.BatchWriteItem, batch(names[:25]...)))
	require.ErrorContains(t, done(t.Context(), tab.client.BatchWriteItem, batch(names[:26]...)), "Too many items")
	require.NoError(t, done(t.Context(), tab.client.BatchGetItem, batchOfKeys(names[:100]...)))
	require.ErrorContains(t, done(t.Context(), tab.client.BatchGetItem, batchOfKeys(names...)), "Too many items")
}

func TestABatchOfReadsEndsAfter16Megabytes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	var names []string
	for i := range 42 {
		names = append(names, fmt.Sprint(i))
		tab.put(names[i], 1, object{"fill": s(strings.Repeat("x", 400_000))}) // 41 of them fit
	}
	out, err := tab.client.BatchGetItem(t.Context(), batchOfKeys(names...))
	require.NoError(t, err)
	assert.Len(t, out.Responses["tab"], 41)
	assert.Len(t, out.UnprocessedKeys["tab"].Keys, 1)
}

func TestUnprocessedKeysAreARequestLikeTheFirst(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Inject(dynamotest.Unprocessed(1))
	in := batchOfKeys("a")
	ask := in.RequestItems["tab"]
	ask.ProjectionExpression, ask.ExpressionAttributeNames = aws.String("#x"), map[string]string{"#x": "x"}
	in.RequestItems["tab"] = ask
	out, err := tab.client.BatchGetItem(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, in.RequestItems, out.UnprocessedKeys)
}
