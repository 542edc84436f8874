package engine

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

func TestTablesAreListedAsDynamoDBLocalListsThem(t *testing.T) {
	t.Parallel()
	client, db := dynamolocaltest.Client(t), New(Config{})
	for _, name := range []string{"bbb", "aaa", "ccc", "Zzz"} {
		for _, to := range []any{client, db} {
			_, err := call(t.Context(), to, name, byRequest())
			require.NoError(t, err)
		}
	}
	for _, in := range []*dynamodb.ListTablesInput{
		{},
		{Limit: aws.Int32(2)},
		{Limit: aws.Int32(4)},
		{Limit: aws.Int32(100)},
		{ExclusiveStartTableName: aws.String("aaa")},
		{ExclusiveStartTableName: aws.String("aab"), Limit: aws.Int32(1)},
		{ExclusiveStartTableName: aws.String("zzz")},
	} {
		want, err := client.ListTables(t.Context(), in)
		require.NoError(t, err)
		got, err := db.ListTables(in)
		require.NoError(t, err)
		assert.Equal(t, want.TableNames, got.TableNames)
		assert.Equal(t, want.LastEvaluatedTableName, got.LastEvaluatedTableName)
	}
}

func TestAPageHasAHundredTables(t *testing.T) {
	t.Parallel()
	db := New(Config{})
	for _, name := range names("tab", 101) {
		_, err := call(t.Context(), db, name, byRequest())
		require.NoError(t, err)
	}
	first, err := db.ListTables(&dynamodb.ListTablesInput{})
	require.NoError(t, err)
	assert.Len(t, first.TableNames, 100)
	second, err := db.ListTables(&dynamodb.ListTablesInput{ExclusiveStartTableName: first.LastEvaluatedTableName})
	require.NoError(t, err)
	assert.Equal(t, []string{"tab99"}, second.TableNames)
	assert.Nil(t, second.LastEvaluatedTableName)
}

func TestListTablesRefuses(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, listTablesRefusals())
}

func TestListTablesRefusesWhatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, listTablesRefusals())
}

func listTablesRefusals() []refusal {
	return []refusal{
		{
			name: "no limit at all", request: &dynamodb.ListTablesInput{Limit: aws.Int32(0)}, code: validation,
			text: "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: " +
				"Member must have value greater than or equal to 1",
			local: "Limit must be greater than or equal to 1",
		},
		{
			name: "a limit too high", request: &dynamodb.ListTablesInput{Limit: aws.Int32(101)}, code: validation,
			text: "1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: " +
				"Member must have value less than or equal to 100",
			local: "Limit in ListTables must be <= 100",
		},
		{
			name: "a start that is no name", request: &dynamodb.ListTablesInput{ExclusiveStartTableName: aws.String("a;")}, code: validation,
			text: "2 validation errors detected: Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: " +
				"Member must have length greater than or equal to 3; Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: " +
				"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
			local: "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, " +
				"and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'",
		},
	}
}
