package howto_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
	"github.com/millrace-dev/millrace/test/docs/howto/tenants"
)

func TestTenantsWithTablesOfTheirOwnShareNothing(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	orders := map[string]*repository.Repository[shop.Order]{}
	for _, tenant := range []string{"acme", "zeta"} {
		app, err := tenants.Open(t.Context(), client, tenant)
		require.NoError(t, err)
		orders[tenant], err = millrace.Repository(app, shop.Orders, repository.Config{})
		require.NoError(t, err)
	}
	_, err := orders["acme"].Execute(t.Context(), "1", shop.Place("ada", 30))
	require.NoError(t, err)

	_, err = orders["zeta"].Load(t.Context(), "1")

	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestTenantsWithSharedTablesSeeTheirOwnOrders(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	app, err := millrace.Open(t.Context(), client, millrace.Config{Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2}})
	require.NoError(t, err)
	all, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	require.NoError(t, projection.CreateTable(t.Context(), client, tenants.Table))
	_, err = app.Project(millrace.Group{Name: "orders", Topics: []string{"order"}}, projection.On(tenants.OnPlaced))
	require.NoError(t, err)
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })
	acme, err := tenants.For(all, "acme")
	require.NoError(t, err)
	zeta, err := tenants.For(all, "zeta")
	require.NoError(t, err)

	order, err := acme.Execute(t.Context(), "1", shop.Place("ada", 30))
	require.NoError(t, err)
	_, err = zeta.Load(t.Context(), "1")
	require.ErrorIs(t, err, journal.ErrNotFound)

	require.NoError(t, app.Groups().WaitApplied(t.Context(), "orders", order.ID, order.Version))
	rows, err := client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &tenants.Table.Name, KeyConditionExpression: aws.String("tenant = :t"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":t": &types.AttributeValueMemberS{Value: "acme"}},
	})
	require.NoError(t, err)
	assert.Len(t, rows.Items, 1)
}

func TestATenantCannotReachAnotherByItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "acme/1", "Acme", "a-b"} {
		_, err := tenants.For(nil, name)
		require.ErrorIs(t, err, tenants.ErrTenant, name)
		_, err = tenants.Open(t.Context(), nil, name)
		require.ErrorIs(t, err, tenants.ErrTenant, name)
	}
}
