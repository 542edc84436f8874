// Package views is the read model of the service: the orders of each customer.
package views

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
)

// Order is an order as queries show it.
type Order struct {
	Order    string       `json:"order"`
	Customer string       `json:"customer"`
	Amount   int64        `json:"amount"`
	Status   order.Status `json:"status"`
}

// OrderTable returns the table with a row for each order, and an index of the orders of a customer.
func OrderTable(name string) projection.RowTable {
	return projection.RowTable{Table: projection.Table{
		Name: name, PartitionKey: "order",
		Indexes: []projection.Index{{
			Name: "by-customer", PartitionKey: "customer", SortKey: "order", Attributes: []string{"amount", "status"},
		}},
	}}
}

// OrderReaction computes the row of an order from its state.
func OrderReaction(orders *repository.Repository[order.Order]) projection.RowReaction {
	return projection.OnState(orders, func(_ context.Context, a repository.Aggregate[order.Order]) (projection.RowUpdate, error) {
		return projection.RowUpdate{
			Expression: "SET customer = :customer, amount = :amount, #status = :status",
			Names:      map[string]string{"#status": "status"},
			Values: map[string]types.AttributeValue{
				":customer": projection.Text(a.State.Customer),
				":amount":   projection.Number(a.State.Amount),
				":status":   projection.Text(a.State.Status),
			},
		}, nil
	})
}

// OrderReader reads the rows.
func OrderReader(client *dynamodb.Client, table projection.RowTable) projection.Reader[Order] {
	return projection.Reader[Order]{Client: client, Table: table.Table, Decode: func(row projection.Row) (Order, error) {
		return Order{row.Text("order"), row.Text("customer"), row.Number("amount"), order.Status(row.Text("status"))}, nil
	}}
}

// OrdersOf returns the query for a page of the orders of a customer.
func OrdersOf(customer, pageToken string) projection.Query {
	return projection.Query{Index: "by-customer", Partition: customer, Limit: 50, Token: pageToken}
}
