// Package shop has the orders that the how-to pages use.
package shop

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
)

type (
	// Order is placed by a customer, and shipped.
	Order struct {
		Customer string
		Total    int
		Shipped  bool
	}
	// Placed is the first event of an order.
	Placed struct {
		Customer string
		Total    int
	}
	// Shipped says that the order is on its way.
	Shipped struct{ Customer string }
)

func (Placed) EventType() string  { return "order.placed.v1" }
func (Shipped) EventType() string { return "order.shipped.v1" }
func (e Placed) Apply(o *Order)   { o.Customer, o.Total = e.Customer, e.Total }
func (Shipped) Apply(o *Order)    { o.Shipped = true }

// Orders defines the orders. Their topic is "order".
var Orders = aggregate.Define[Order]("order", Placed{}, Shipped{})

// ErrNoOrder reports that the order was not placed.
var ErrNoOrder = errors.New("no such order")

// Place places an order.
func Place(customer string, total int) aggregate.Decision[Order] {
	return func(Order) (aggregate.Events[Order], error) {
		return aggregate.Events[Order]{Placed{customer, total}}, nil
	}
}

// Ship ships an order.
func Ship(o Order) (aggregate.Events[Order], error) {
	if o.Customer == "" {
		return nil, ErrNoOrder
	}
	return aggregate.Events[Order]{Shipped{o.Customer}}, nil
}
