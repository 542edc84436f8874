// Package order is the service that takes orders: what a consumer wants of a restaurant, until the
// kitchen agrees to it.
package order

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Definition makes orders an aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Order]("order", Created{}, Revised{}, Approved{}, Rejected{}, Cancelled{})

// Order is the state of an order; the zero value is that before it is created.
type Order struct {
	Details
	Status   Status
	Revision int    // how often the lines were replaced
	Reason   string // why it was rejected or cancelled
}

// Details are what the consumer orders, at a time in UTC with milliseconds.
type Details struct {
	ConsumerID, Restaurant string
	Lines                  []Line
	CreatedAt              time.Time
}

// Line is a dish of the menu, how many of it, and what each costs.
type Line struct {
	Name       string `json:"name"`
	Quantity   int64  `json:"quantity"`
	PriceCents int64  `json:"priceCents"`
}

// Status is how far an order has got: pending until the kitchen has answered, or the consumer has
// thought again.
type Status string

const (
	StatusApprovalPending, StatusApproved Status = "APPROVAL_PENDING", "APPROVED"
	StatusRejected, StatusCancelled       Status = "REJECTED", "CANCELLED"
)

// Event is anything that happens. The names under which events are stored stay the same for good.
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

// Refused is why an order does not take a command: for its status, which is empty for one that is
// not there.
type Refused struct{ Status }

func (e Refused) Error() string { return "the order's status is '" + string(e.Status) + "'" }

// Create places an order.
func Create(d Details) Decision {
	d.CreatedAt = d.CreatedAt.UTC().Truncate(time.Millisecond)
	return when("", Created{d}, cmp.Or(readable("restaurant", d.Restaurant), valid(d.Lines)))
}

// Revise replaces the lines, as long as the order is pending.
func Revise(lines []Line) Decision {
	return func(o Order) (Events, error) {
		return when(StatusApprovalPending, Revised{o.Revision + 1, lines}, valid(lines))(o)
	}
}

// Approve is the kitchen's word for one revision, which does not count for a later one.
func Approve(revision int) Decision {
	return func(o Order) (Events, error) {
		if o.Revision > revision {
			return nil, nil
		}
		return when(StatusApprovalPending, Approved{}, nil)(o)
	}
}

// Reject is the kitchen's word against an order, and Cancel takes it back.
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

// ErrInvalid says what lines an order takes.
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
