package dynamolocaltest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

func TestEachClientHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	mine, other := dynamolocaltest.Client(t), dynamolocaltest.Client(t)
	_, err := mine.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("journal"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pkey"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pkey"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)

	assert.Equal(t, []string{"journal"}, tables(t, mine))
	assert.Empty(t, tables(t, other), "another database must not see the table")
	assert.Equal(t, []string{"journal"}, tables(t, dynamodb.New(mine.Options())), "a client made of its options must")
}

func tables(t *testing.T, client *dynamodb.Client) []string {
	t.Helper()
	out, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	return out.TableNames
}
