// Package order is the service for orders: what a consumer orders from a restaurant, until the
// kitchen accepts it.
package order

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Definition defines the aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Order]("order", Created{}, Revised{}, Approved{}, Rejected{}, Cancelled{})

// Order is the state of an order. The zero value is the state before it is created.
type Order struct {
	Details
	Status   Status
	Revision int    // number of replacements of the lines
	Reason   string // why it was rejected or cancelled
}

// Details are the contents of a new order, with a time in UTC in milliseconds.
type Details struct {
	ConsumerID, Restaurant string
	Lines                  []Line
	CreatedAt              time.Time
}

// Line is a dish of the menu, with its quantity and the price of one.
type Line struct {
	Name       string `json:"name"`
	Quantity   int64  `json:"quantity"`
	PriceCents int64  `json:"priceCents"`
}

// Status is the progress of an order. It is pending until the kitchen has replied or the consumer
// has cancelled.
type Status string

const (
	StatusApprovalPending, StatusApproved Status = "APPROVAL_PENDING", "APPROVED"
	StatusRejected, StatusCancelled       Status = "REJECTED", "CANCELLED"
)

// Event is an event of an order. Stored names of events never change.
type (
	Event    = aggregate.Event[Order]
	Events   = aggregate.Events[Order]
	Decision = aggregate.Decision[Order]
	Created  struct{ Details }
	Revised  struct {
		Revision int
		Lines    []Line
	}
	Approved  struct{}
	Rejected  struct{ Reason string }
	Cancelled struct{ Reason string }
)

func (Created) EventType() string   { return "order.created.v1" }
func (Revised) EventType() string   { return "order.revised.v1" }
func (Approved) EventType() string  { return "order.approved.v1" }
func (Rejected) EventType() string  { return "order.rejected.v1" }
func (Cancelled) EventType() string { return "order.cancelled.v1" }
func (e Created) Apply(o *Order)    { o.Details, o.Status = e.Details, StatusApprovalPending }
func (e Revised) Apply(o *Order)    { o.Revision, o.Lines = e.Revision, e.Lines }
func (Approved) Apply(o *Order)     { o.Status = StatusApproved }
func (e Rejected) Apply(o *Order)   { o.Status, o.Reason = StatusRejected, e.Reason }
func (e Cancelled) Apply(o *Order)  { o.Status, o.Reason = StatusCancelled, e.Reason }

// Refused reports that the status of an order does not allow a command. The status is empty if
// there is no such order.
type Refused struct{ Status }

func (e Refused) Error() string { return "the order's status is '" + string(e.Status) + "'" }

// Create places an order.
func Create(d Details) Decision {
	d.CreatedAt = d.CreatedAt.UTC().Truncate(time.Millisecond)
	return when("", Created{d}, cmp.Or(readable("restaurant", d.Restaurant), valid(d.Lines)))
}

// Revise replaces the lines while the order is pending.
func Revise(lines []Line) Decision {
	return func(o Order) (Events, error) {
		return when(StatusApprovalPending, Revised{o.Revision + 1, lines}, valid(lines))(o)
	}
}

// Approve records that the kitchen accepts one revision. It has no effect on a later revision.
func Approve(revision int) Decision {
	return func(o Order) (Events, error) {
		if o.Revision > revision {
			return nil, nil
		}
		return when(StatusApprovalPending, Approved{}, nil)(o)
	}
}

// Reject records that the kitchen declines an order, and Cancel that the consumer cancels it.
func Reject(reason string) Decision { return when(StatusApprovalPending, Rejected{reason}, nil) }
func Cancel(reason string) Decision { return when(StatusApprovalPending, Cancelled{reason}, nil) }

func when(status Status, event Event, fault error) Decision {
	return func(o Order) (Events, error) {
		if o.Status != status {
			return nil, Refused{o.Status}
		}
		return Events{event}, fault
	}
}

// ErrInvalid reports invalid lines of an order.
var ErrInvalid = errors.New("an order has 1 to 100 lines, each of 1 to 1,000 dishes with a name and a price")

func valid(lines []Line) error {
	if len(lines) < 1 || len(lines) > 100 {
		return ErrInvalid
	}
	for i, l := range lines {
		if l.Quantity < 1 || l.Quantity > 1e3 || l.PriceCents < 0 || l.PriceCents > 1e8 {
			return ErrInvalid
		}
		if err := readable(fmt.Sprintf("dish %d, name", i+1), l.Name); err != nil {
			return err
		}
	}
	return nil
}
