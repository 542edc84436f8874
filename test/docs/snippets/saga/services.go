package saga

import (
	"github.com/millrace-dev/millrace/aggregate"
)

type (
	// Order is an aggregate.
	Order struct{ Placed bool }
	// Customer is an aggregate with reserved credit for each order.
	Customer struct{ Reserved map[string]int }
)

type (
	// OrderPlaced is an event of an order.
	OrderPlaced struct {
		Customer string
		Total    int
	}
	// CreditReserved is an event of a customer.
	CreditReserved struct {
		Order string
		Total int
	}
)

func (OrderPlaced) EventType() string    { return "order.placed.v1" }
func (OrderPlaced) Apply(o *Order)       { o.Placed = true }
func (CreditReserved) EventType() string { return "customer.credit_reserved.v1" }
func (e CreditReserved) Apply(c *Customer) {
	if c.Reserved == nil {
		c.Reserved = map[string]int{}
	}
	c.Reserved[e.Order] = e.Total
}

// Orders and Customers define the aggregates.
var (
	Orders    = aggregate.Define[Order]("order", OrderPlaced{})
	Customers = aggregate.Define[Customer]("customer", CreditReserved{})
)

// Place places an order.
func Place(customer string, total int) aggregate.Decision[Order] {
	return func(Order) (aggregate.Events[Order], error) {
		return aggregate.Events[Order]{OrderPlaced{customer, total}}, nil
	}
}

// Reserve reserves credit for an order.
func Reserve(order string, total int) aggregate.Decision[Customer] {
	return func(Customer) (aggregate.Events[Customer], error) {
		return aggregate.Events[Customer]{CreditReserved{order, total}}, nil
	}
}
