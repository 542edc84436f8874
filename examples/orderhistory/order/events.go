package order

import "github.com/millrace-dev/millrace/aggregate"

// Event is anything that happens to an order.
type Event = aggregate.Event[Order]

type (
	// Created is an order's beginning: a consumer has placed it.
	Created struct{ Details }
	// Approved means that the restaurant takes the order.
	Approved struct{}
	// Revised replaces all lines.
	Revised struct {
		Lines Lines `json:"lines"`
	}
	// Cancelled ends an order that nobody has picked up.
	Cancelled struct {
		Reason string `json:"reason,omitempty"`
	}
	// PickedUp means that the courier has the food.
	PickedUp struct{}
	// Delivered means that the consumer has it.
	Delivered struct{}
)

// The names under which events are stored stay the same for good.

func (Created) EventType() string   { return "order.created.v1" }
func (Approved) EventType() string  { return "order.approved.v1" }
func (Revised) EventType() string   { return "order.revised.v1" }
func (Cancelled) EventType() string { return "order.cancelled.v1" }
func (PickedUp) EventType() string  { return "order.picked-up.v1" }
func (Delivered) EventType() string { return "order.delivered.v1" }

func (e Created) Apply(o *Order)   { *o = Order{Details: e.Details, Status: StatusApprovalPending} }
func (Approved) Apply(o *Order)    { o.Status = StatusApproved }
func (e Revised) Apply(o *Order)   { o.Lines = e.Lines }
func (e Cancelled) Apply(o *Order) { o.Status, o.CancelReason = StatusCancelled, e.Reason }
func (PickedUp) Apply(o *Order)    { o.Delivery = DeliveryPickedUp }
func (Delivered) Apply(o *Order)   { o.Delivery = DeliveryDelivered }
