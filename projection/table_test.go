package projection_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

func TestATableIsCreatedOnce(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	orders := projection.Table{Name: "orders", PartitionKey: "customer", SortKey: "order", TimeToLive: "expires"}
	require.NoError(t, projection.CreateTable(t.Context(), client, orders))
	require.NoError(t, projection.CreateTable(t.Context(), client, orders), "it exists")

	put := orders.Key("anna", "1")
	put["total"] = &types.AttributeValueMemberN{Value: "5"}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: put})
	require.NoError(t, err)
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: orders.Key("anna", "1")})
	require.NoError(t, err)
	assert.Equal(t, put, out.Item)

	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("orders")})
	require.NoError(t, err)
	assert.Equal(t, "expires", aws.ToString(ttl.TimeToLiveDescription.AttributeName))
}

func TestATableWithOtherKeysIsRefused(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	balances := projection.Table{Name: "balances", PartitionKey: "account"}
	require.NoError(t, projection.CreateTable(t.Context(), client, balances))

	balances.SortKey = "currency"
	assert.ErrorAs(t, projection.CreateTable(t.Context(), client, balances), new(*journal.DescriptorMismatchError))
}

func TestATableNeedsANameAndAPartitionKey(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	for _, table := range []projection.Table{{Name: "balances"}, {PartitionKey: "account"}} {
		var invalid *projection.ConfigError
		assert.ErrorAs(t, projection.CreateTable(t.Context(), client, table), &invalid)
	}
}
