package tables_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

func TestEnsureCreatesATableOnceAndComparesIt(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	table := func(key string) *dynamodb.CreateTableInput {
		return &dynamodb.CreateTableInput{
			TableName: aws.String("ensured"), BillingMode: "PAY_PER_REQUEST",
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: "S"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: "HASH"}},
		}
	}
	require.NoError(t, tables.Ensure(t.Context(), client, table("a")))
	require.NoError(t, tables.Ensure(t.Context(), client, table("a")))
	assert.ErrorAs(t, tables.Ensure(t.Context(), client, table("b")), new(*journal.DescriptorMismatchError))
}

func TestEnsureExpiryRefusesAnotherAttribute(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, tables.Ensure(t.Context(), client, &dynamodb.CreateTableInput{
		TableName: aws.String("ensured"), BillingMode: "PAY_PER_REQUEST",
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("a"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("a"), KeyType: "HASH"}},
	}))
	require.NoError(t, tables.EnsureExpiry(t.Context(), client, "ensured", "expires"))
	require.NoError(t, tables.EnsureExpiry(t.Context(), client, "ensured", "expires"))
	assert.ErrorAs(t, tables.EnsureExpiry(t.Context(), client, "ensured", "gone"), new(*journal.DescriptorMismatchError))
	assert.ErrorIs(t, tables.EnsureExpiry(t.Context(), client, "missing", "expires"), journal.ErrTableMissing)
}

func TestExplainNamesTheFunctionThatCreatesTheTable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		text string
	}{
		"table": {&types.ResourceNotFoundException{}, `"waiting" (process.CreateTable creates it)`},
		"index": {
			&smithy.GenericAPIError{Code: "ValidationException", Message: "The table does not have the specified index: process-due"},
			`"waiting" lacks an index (process.CreateTable reports which one to add, and its keys)`,
		},
	} {
		err := tables.Explain(test.err, "waiting", "process.CreateTable")
		require.ErrorIs(t, err, journal.ErrTableMissing, name)
		require.ErrorIs(t, err, test.err, name)
		assert.ErrorContains(t, err, test.text, name)
	}
}
