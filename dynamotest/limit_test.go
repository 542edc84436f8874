package dynamotest_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestAnItemHasUpTo400KilobytesWithWhatLocalIndexesKeep(t *testing.T) {
	t.Parallel()
	const most, key = 400 << 10, 1 + 1 + 1 + 2
	tab := newTable(t)
	put := func(size int, more object) error {
		others := key
		for name, v := range more {
			others += len(name) + len(v.(*types.AttributeValueMemberS).Value)
		}
		in := putting("a", 1, more)
		in.Item["fill"] = fill(size, others)
		return done(t.Context(), tab.client.PutItem, in)
	}
	require.NoError(t, put(most, nil))
	require.ErrorContains(t, put(most+1, nil), "Item size has exceeded")
	require.NoError(t, put(most, object{"g": s("x")}), "global indexes do not count")
	const local = key + 2 // l as well
	require.NoError(t, put(most-local, object{"l": s("x")}))
	require.ErrorContains(t, put(most-local+1, object{"l": s("x")}), "Item size has exceeded")
}

func TestAKeyHasItsLargestSize(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.createSimple("text", types.ScalarAttributeTypeS)
	put := func(p, sort int) error {
		return done(t.Context(), tab.client.PutItem, &dynamodb.PutItemInput{TableName: aws.String("text"), Item: object{
			"p": s(strings.Repeat("x", p)), "s": s(strings.Repeat("x", sort)),
		}})
	}
	require.NoError(t, put(2048, 1024))
	require.Error(t, put(2049, 1))
	require.Error(t, put(1, 1025))
}

func TestNoPartOfAKeyIsUpdated(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for _, name := range []string{"p", "s"} {
		in := setting("a", 1, "REMOVE #k", nil)
		in.ExpressionAttributeNames = map[string]string{"#k": name}
		require.ErrorContains(t, done(t.Context(), tab.client.UpdateItem, in), "This attribute is part of the key")
	}
}
