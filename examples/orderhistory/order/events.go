package order

import "github.com/millrace-dev/millrace/aggregate"

// Event is anything that happens to an order.
type Event = aggregate.Event[Order]

// What happens to an order, from its beginning to its delivery or its end before that.

type (
	Created  struct{ Details }
	Approved struct{} // the restaurant takes the order
	Revised  struct { // all lines are replaced
		Lines Lines `json:"lines"`
	}
	Cancelled struct {
		Reason string `json:"reason,omitempty"`
	}
	PickedUp  struct{} // the courier has the food
	Delivered struct{} // the consumer has it
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
