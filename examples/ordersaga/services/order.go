package services

import "github.com/millrace-dev/millrace/aggregate"

// Order is the state of an order.
type Order struct{ Status, Reason string }

// These are the events of an order.

type (
	// OrderPlaced begins an order.
	OrderPlaced struct {
		Customer string
		Total    int
	}

	// OrderApproved ends the order with success.
	OrderApproved struct{}

	// OrderRejected ends the order without success.
	OrderRejected struct{ Reason string }
)

func (OrderPlaced) EventType() string   { return "order.placed.v1" }
func (OrderApproved) EventType() string { return "order.approved.v1" }
func (OrderRejected) EventType() string { return "order.rejected.v1" }
func (OrderPlaced) Apply(o *Order)      { o.Status = "placed" }
func (OrderApproved) Apply(o *Order)    { o.Status = "approved" }
func (e OrderRejected) Apply(o *Order)  { o.Status, o.Reason = "rejected", e.Reason }

// Orders defines the aggregate.
var Orders = aggregate.Define[Order]("saga-order", OrderPlaced{}, OrderApproved{}, OrderRejected{})

// Place returns a decision that begins an order.
func Place(customer string, total int) aggregate.Decision[Order] {
	return func(Order) (aggregate.Events[Order], error) {
		return aggregate.Events[Order]{OrderPlaced{customer, total}}, nil
	}
}

// Approve ends the order with success.
func Approve(o Order) (aggregate.Events[Order], error) {
	if o.Status != "placed" {
		return nil, nil
	}
	return aggregate.Events[Order]{OrderApproved{}}, nil
}

// Reject returns a decision that ends the order without success.
func Reject(reason string) aggregate.Decision[Order] {
	return func(o Order) (aggregate.Events[Order], error) {
		if o.Status != "placed" {
			return nil, nil
		}
		return aggregate.Events[Order]{OrderRejected{reason}}, nil
	}
}
