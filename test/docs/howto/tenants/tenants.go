// Package tenants keeps the data of several tenants apart.
package tenants

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// Open opens the App of a tenant, whose tables begin with "acme-" for the tenant acme.
func Open(ctx context.Context, client *dynamodb.Client, tenant string) (*millrace.App, error) {
	if !valid(tenant) {
		return nil, ErrTenant
	}
	return millrace.Open(ctx, client, millrace.Config{Prefix: tenant + "-", Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
}

// Orders are the orders of one tenant, in tables that all tenants share.
type Orders struct {
	tenant string
	orders *repository.Repository[shop.Order]
}

// ErrTenant reports a tenant whose name is not made of the letters a to z and digits.
var ErrTenant = errors.New("not a name of a tenant")

// For returns the orders of a tenant. Take the tenant from the caller's credentials, and never from
// the request's path or body.
func For(orders *repository.Repository[shop.Order], tenant string) (Orders, error) {
	if !valid(tenant) {
		return Orders{}, ErrTenant
	}
	return Orders{tenant, orders}, nil
}

// Execute executes a decision on an order of the tenant.
func (o Orders) Execute(ctx context.Context, id string, decide aggregate.Decision[shop.Order]) (repository.Aggregate[shop.Order], error) {
	return o.orders.Execute(ctx, o.tenant+"/"+id, decide)
}

// Load loads an order of the tenant.
func (o Orders) Load(ctx context.Context, id string) (repository.Aggregate[shop.Order], error) {
	return o.orders.Load(ctx, o.tenant+"/"+id)
}

// Of returns the tenant of an aggregate, for projections and handlers.
func Of(id aggregate.ID) (tenant, value string) {
	tenant, value, _ = strings.Cut(id.Value, "/")
	return tenant, value
}

// valid reports that a name has no separator in it, so that no tenant is the beginning of another.
func valid(tenant string) bool {
	return tenant != "" && strings.Trim(tenant, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Table is a read model. The tenant is its partition key, so a query reads the rows of one tenant.
var Table = projection.Table{Name: "shop-orders", PartitionKey: "tenant", SortKey: "order"}

// OnPlaced writes the row of an order.
func OnPlaced(_ context.Context, e shop.Placed, r *journal.Record) ([]projection.Write, error) {
	item := Table.Key(Of(r.Aggregate))
	item["customer"] = &types.AttributeValueMemberS{Value: e.Customer}
	return []projection.Write{projection.Put(types.Put{TableName: &Table.Name, Item: item})}, nil
}
