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

func TestATableIsCreatedWithItsIndexes(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	orders := projection.Table{Name: "orders", PartitionKey: "id", Indexes: []projection.Index{
		{Name: "by-customer", PartitionKey: "customer", SortKey: "day", SortType: types.ScalarAttributeTypeN},
		{Name: "by-state", PartitionKey: "state", SortKey: "id", Attributes: []string{"customer", "total"}},
		{Name: "keys", PartitionKey: "state", Attributes: []string{}},
	}}
	schema, err := projection.TableSchema(orders)
	require.NoError(t, err)
	_, err = client.CreateTable(t.Context(), schema.Input)
	require.NoError(t, err, "other means can create it")
	require.NoError(t, projection.CreateTable(t.Context(), client, orders), "it is as declared")

	fewer, more, other := orders, orders, orders
	fewer.Indexes = []projection.Index{
		{Name: "by-customer", PartitionKey: "customer", SortKey: "day", SortType: types.ScalarAttributeTypeN, Attributes: []string{"total"}},
		{Name: "by-state", PartitionKey: "state", SortKey: "id", Attributes: []string{"total"}},
	}
	assert.NoError(t, projection.CreateTable(t.Context(), client, fewer), "an index may hold more than is declared")
	more.Indexes = []projection.Index{{Name: "by-state", PartitionKey: "state", SortKey: "id", Attributes: []string{"total", "day"}}}
	err = projection.CreateTable(t.Context(), client, more)
	assert.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
	assert.ErrorContains(t, err, "(state S, id S) projecting INCLUDE [customer total], the config says (state S, id S) projecting INCLUDE [total day]")
	other.Indexes = []projection.Index{{Name: "by-state", PartitionKey: "state"}}
	assert.ErrorAs(t, projection.CreateTable(t.Context(), client, other), new(*journal.DescriptorMismatchError))
}

func TestAnIndexThatATableLacksIsNotAdded(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	orders := projection.Table{Name: "orders", PartitionKey: "id"}
	require.NoError(t, projection.CreateTable(t.Context(), client, orders))
	for _, customer := range []string{"anna", "bert"} {
		item := orders.Key(customer + "-1")
		item["customer"], item["day"] = projection.Text(customer), projection.Text("monday")
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &orders.Name, Item: item})
		require.NoError(t, err)
	}
	orders.Indexes = []projection.Index{
		{Name: "by-customer", PartitionKey: "customer", SortKey: "day"},
		{Name: "by-day", PartitionKey: "day"},
	}
	for _, name := range []string{"by-customer", "by-day"} {
		err := projection.CreateTable(t.Context(), client, orders)
		var missing *projection.IndexMissingError
		require.ErrorAs(t, err, &missing)
		require.ErrorIs(t, err, journal.ErrTableMissing)
		assert.Equal(t, name, missing.Index)
		_, err = client.UpdateTable(t.Context(), missing.Add)
		require.NoError(t, err)
	}
	require.NoError(t, projection.CreateTable(t.Context(), client, orders), "it waits until the index is built")
	page, err := newReader(client, orders).Page(t.Context(), projection.Query{Index: "by-customer", Partition: "anna"})
	require.NoError(t, err)
	assert.Equal(t, []string{"anna-1"}, page.Rows)
}

func TestAnIndexIsDeclaredWithANameAndKeys(t *testing.T) {
	t.Parallel()
	for name, indexes := range map[string][]projection.Index{
		"no name":       {{PartitionKey: "a"}},
		"no key":        {{Name: "by-a"}},
		"one name":      {{Name: "by-a", PartitionKey: "a"}, {Name: "by-a", PartitionKey: "b"}},
		"reserved":      {{Name: "by-a", PartitionKey: "a", SortKey: "millrace_number"}},
		"reserved too":  {{Name: "by-a", PartitionKey: "a", Attributes: []string{"millrace_group"}}},
		"a binary key":  {{Name: "by-a", PartitionKey: "a", SortKey: "b", SortType: types.ScalarAttributeTypeB}},
		"key of table":  {{Name: "by-a", PartitionKey: "a", SortKey: "id", SortType: types.ScalarAttributeTypeN}},
		"other indexes": {{Name: "by-a", PartitionKey: "a", SortKey: "b"}, {Name: "by-b", PartitionKey: "a", SortKey: "b", SortType: types.ScalarAttributeTypeN}},
	} {
		_, err := projection.TableSchema(projection.Table{Name: "orders", PartitionKey: "id", Indexes: indexes})
		assert.ErrorAs(t, err, new(*projection.ConfigError), name)
	}
}
