// Package order is the aggregate of an order: it decides what can happen to it.
package order

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
)

// Order is the state of an order.
type Order struct {
	Customer string
	Amount   int // in cents
	Status   Status
}

// Status is how far an order has come.
type Status string

// These are the statuses of an order. One that was never placed has none.
const (
	StatusPending   Status = "pending" // not paid yet
	StatusPaid      Status = "paid"
	StatusCancelled Status = "cancelled"
)

// Events of an order.
type (
	// Placed begins an order.
	Placed struct {
		Customer string
		Amount   int
	}
	// Paid records that the customer has paid.
	Paid struct{}
	// Cancelled ends an order that is not paid.
	Cancelled struct{ Reason string }
)

// The names under which the events are stored. They never change.

func (Placed) EventType() string    { return "order.placed.v1" }
func (Paid) EventType() string      { return "order.paid.v1" }
func (Cancelled) EventType() string { return "order.cancelled.v1" }

// Apply methods change the state. They decide nothing and cannot fail.

func (e Placed) Apply(o *Order)  { *o = Order{e.Customer, e.Amount, StatusPending} }
func (Paid) Apply(o *Order)      { o.Status = StatusPaid }
func (Cancelled) Apply(o *Order) { o.Status = StatusCancelled }

// Definition is how orders are stored.
var Definition = aggregate.Define[Order]("order", Placed{}, Paid{}, Cancelled{})

// Errors with which decisions refuse a command.
var (
	ErrInvalid   = errors.New("an order has a customer, and an amount above 0")
	ErrPlaced    = errors.New("the order is placed already")
	ErrNotPlaced = errors.New("there is no such order")
	ErrPaid      = errors.New("the order is paid")
	ErrCancelled = errors.New("the order is cancelled")
)

type (
	// Decision decides on an order.
	Decision = aggregate.Decision[Order]
	events   = aggregate.Events[Order]
)

// Place begins an order.
func Place(customer string, amount int) Decision {
	return func(o Order) (events, error) {
		switch {
		case o.Status != "":
			return nil, ErrPlaced
		case customer == "" || amount <= 0:
			return nil, ErrInvalid
		}
		return events{Placed{customer, amount}}, nil
	}
}

// Pay records a payment.
func Pay(o Order) (events, error) {
	return pending(o, Paid{})
}

// Cancel ends an order that is not paid.
func Cancel(reason string) Decision {
	return func(o Order) (events, error) { return pending(o, Cancelled{reason}) }
}

// pending returns the event if the order waits for its payment.
func pending(o Order, e aggregate.Event[Order]) (events, error) {
	switch o.Status {
	case StatusPending:
		return events{e}, nil
	case StatusPaid:
		return nil, ErrPaid
	case StatusCancelled:
		return nil, ErrCancelled
	default:
		return nil, ErrNotPlaced
	}
}
