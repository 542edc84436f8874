package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
)

// addIndex adds a global index to the table "items".
func (db *database) addIndex(name, partition, sort string) {
	db.Helper()
	key, definitions := schema(partition, sort)
	_, err := db.client.UpdateTable(db.Context(), &dynamodb.UpdateTableInput{
		TableName: aws.String("items"), AttributeDefinitions: definitions,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: &name, KeySchema: key, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}},
	})
	require.NoError(db, err)
	for {
		out, err := db.client.DescribeTable(db.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")})
		require.NoError(db, err)
		if !slices.ContainsFunc(out.Table.GlobalSecondaryIndexes, func(ix types.GlobalSecondaryIndexDescription) bool {
			return ix.IndexStatus != types.IndexStatusActive
		}) {
			return
		}
	}
}

// indexed returns the keys of the items in an index, in alphabetical order.
func (db *database) indexed(index string) (string, error) {
	out, err := db.client.Scan(db.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: &index})
	if err != nil {
		return "", err
	}
	keys := strings.Fields(valuesOf(out.Items, "p"))
	slices.Sort(keys)
	return strings.Join(keys, " "), nil
}

func TestANewIndexOmitsItemsWhoseKeyItDoesNotAllow(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	for key, x := range map[string]any{
		"a": strings.Repeat("x", 1024), "b": strings.Repeat("x", 1025), "c": strings.Repeat("x", 2048), "d": strings.Repeat("x", 2049),
	} {
		require.NoError(t, db.put("items", m{"p": key, "x": x}))
	}
	require.NoError(t, db.put("items", m{"p": "none"}))
	if !testdb.IsLocal() { // which never completes an index over such items
		require.NoError(t, db.put("items", m{"p": "number", "x": 1}))
		require.NoError(t, db.put("items", m{"p": "list", "x": list{"x"}}))
		require.NoError(t, db.put("items", m{"p": "empty", "x": ""}))
	}
	db.addIndex("by-x", "x:S", "")
	db.addIndex("sorted-by-x", "p:S", "x:S")

	const tooLong = "it has keys that are too long"
	for _, c := range []struct{ index, want string }{{"by-x", `"a" "b" "c"`}, {"sorted-by-x", `"a"`}} {
		db.run(c.index, tooLong, func() error {
			got, err := db.indexed(c.index)
			return firstOf(err, same(c.want, got))
		})
	}
}

func TestAnItemThatANewIndexOmitsCanBeRepaired(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	require.NoError(t, db.put("items", m{"p": "a", "x": strings.Repeat("x", 2049)}))
	db.addIndex("by-x", "x:S", "")
	require.NoError(t, db.put("items", m{"p": "a", "x": "short"}))
	got, err := db.indexed("by-x")
	require.NoError(t, err)
	if !testdb.IsLocal() { // which keeps the entry of the long key
		require.Equal(t, `"a"`, got)
	}
}

// indexedPuts are items of a table with a global index on x and y, each with a part of the error of
// a put, or with the items in the index.
var indexedPuts = []struct {
	name string
	item m
	err  string
	want string
}{
	{"an item without keys of the index is omitted", m{"p": "a"}, "", ""},
	{"an item without sort key of the index is omitted", m{"p": "b", "x": "x"}, "", ""},
	{"an item with both is in the index", m{"p": "c", "x": "x", "y": "y"}, "", `"c"`},
	{"an item with the same keys is in the index too", m{"p": "d", "x": "x", "y": "y"}, "", `"c" "d"`},
	{"a key of another type", m{"p": "e", "x": 1}, "Type mismatch for Index Key x Expected: S Actual: N", ""},
	{"an empty key", m{"p": "e", "x": ""}, "empty string value", ""},
	{"a partition key that is too long", m{"p": "e", "x": strings.Repeat("x", 2049)}, "2048", ""},
	{"a sort key that is too long", m{"p": "e", "y": strings.Repeat("x", 1025)}, "1024", ""},
	{"the longest keys", m{"p": "e", "x": strings.Repeat("x", 2048), "y": strings.Repeat("x", 1024)}, "", `"c" "d" "e"`},
	{"an item that loses a key leaves the index", m{"p": "c", "x": "x"}, "", `"d" "e"`},
}

func TestIndexesHaveTheItemsOfAWS(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	db.addIndex("by-x-and-y", "x:S", "y:S")
	for _, c := range indexedPuts {
		db.run(c.name, "", func() error {
			err := db.put("items", c.item)
			if c.err != "" {
				return refused(err, c.err)
			}
			if err != nil {
				return err
			}
			got, err := db.indexed("by-x-and-y")
			return firstOf(err, same(c.want, got))
		})
	}
	query := func(start m, consistent bool) error {
		_, err := db.client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("items"), IndexName: aws.String("by-x-and-y"), KeyConditionExpression: aws.String("x = :x AND y = :y"),
			ExpressionAttributeValues: attributes(m{":x": "x", ":y": "y"}), ExclusiveStartKey: attributes(start), ConsistentRead: &consistent,
		})
		return err
	}
	for name, start := range map[string]m{
		"without the key of the table": {"x": "x", "y": "y"}, "without the sort key": {"x": "x", "p": "c"}, "without the partition key": {"y": "y", "p": "c"},
		"with another attribute": {"x": "x", "y": "y", "p": "c", "a": 1}, "with another sort key": {"x": "x", "y": "z", "p": "c"},
		"with another partition key": {"x": "z", "y": "y", "p": "c"},
	} {
		db.run("a start key "+name, "", func() error { return refused(query(start, false), "ValidationException") })
	}
	db.run("a start key within the condition", "", func() error { return query(m{"x": "x", "y": "y", "p": "c"}, false) })
	db.run("a consistent read", "", func() error {
		return refused(query(nil, true), "Consistent reads are not supported on global secondary indexes")
	})
}
