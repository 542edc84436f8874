// Package delivery is the courier's service: it brings an order from the counter to the consumer. A
// delivery has the id of its order.
package delivery

import "github.com/millrace-dev/millrace/aggregate"

// Definition defines the aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Delivery]("delivery", Scheduled{}, PickedUp{}, Delivered{})

// Delivery is the state of a delivery. The zero value is the state before it is scheduled.
type Delivery struct{ Status Status }

// Status is the progress of a delivery.
type Status string

const StatusScheduled, StatusPickedUp, StatusDelivered Status = "SCHEDULED", "PICKED_UP", "DELIVERED"

// Event is an event of a delivery. Stored names of events never change.
type (
	Event     = aggregate.Event[Delivery]
	Events    = aggregate.Events[Delivery]
	Scheduled struct{}
	PickedUp  struct{}
	Delivered struct{}
)

func (Scheduled) EventType() string { return "delivery.scheduled.v1" }
func (PickedUp) EventType() string  { return "delivery.picked-up.v1" }
func (Delivered) EventType() string { return "delivery.delivered.v1" }
func (Scheduled) Apply(d *Delivery) { d.Status = StatusScheduled }
func (PickedUp) Apply(d *Delivery)  { d.Status = StatusPickedUp }
func (Delivered) Apply(d *Delivery) { d.Status = StatusDelivered }

// Refused reports that the status of a delivery does not allow a command. The status is empty if
// there is no such delivery.
type Refused struct{ Status }

func (e Refused) Error() string { return "the delivery's status is '" + string(e.Status) + "'" }

// Schedule sends the courier. PickUp takes the order from the counter, and Deliver brings it to the
// consumer.
func Schedule(d Delivery) (Events, error) { return d.from("", Scheduled{}) }
func PickUp(d Delivery) (Events, error)   { return d.from(StatusScheduled, PickedUp{}) }
func Deliver(d Delivery) (Events, error)  { return d.from(StatusPickedUp, Delivered{}) }

func (d Delivery) from(status Status, event Event) (Events, error) {
	if d.Status != status {
		return nil, Refused{d.Status}
	}
	return Events{event}, nil
}
