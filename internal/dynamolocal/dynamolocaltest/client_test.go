package dynamolocaltest_test

import (
	"fmt"
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
	create(t, mine, "journal")

	assert.Equal(t, []string{"journal"}, tables(t, mine))
	assert.Empty(t, tables(t, other), "another database must not see the table")
	assert.Equal(t, []string{"journal"}, tables(t, dynamodb.New(mine.Options())), "a client made of its options must")
}

// Two tests make a table of the same name, one after the other. Other packages use the emulator at
// the same time and may take a key in between, so the test counts the keys instead of comparing
// them.
func TestATestReturnsItsDatabaseEmpty(t *testing.T) {
	t.Parallel()
	const tests = 20
	keys := map[string]bool{}
	for n := range tests {
		t.Run("one", func(t *testing.T) {
			client := dynamolocaltest.Client(t)
			assert.Empty(t, tables(t, client))
			create(t, client, "journal")
			put(t, client, fmt.Sprint("written by test ", n))
			credentials, err := client.Options().Credentials.Retrieve(t.Context())
			require.NoError(t, err)
			keys[credentials.AccessKeyID] = true
		})
	}
	assert.Less(t, len(keys), tests, "databases must be used again")
}

// The transaction has the same token in each test.
func put(t *testing.T, client *dynamodb.Client, key string) {
	t.Helper()
	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String("token"),
		TransactItems: []types.TransactWriteItem{{Put: &types.Put{
			TableName: aws.String("journal"), Item: map[string]types.AttributeValue{"pkey": &types.AttributeValueMemberS{Value: key}},
		}}},
	})
	require.NoError(t, err)
}

func TestAClientEndsWithItsTest(t *testing.T) {
	t.Parallel()
	dynamolocaltest.Endpoint(t) // also skips this test if there is no emulator
	var client *dynamodb.Client
	require.True(t, t.Run("ended", func(t *testing.T) { client = dynamolocaltest.Client(t) }))

	_, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })

	require.ErrorContains(t, err, "has ended")
}

func create(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pkey"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pkey"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
}

func tables(t *testing.T, client *dynamodb.Client) []string {
	t.Helper()
	out, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	return out.TableNames
}
