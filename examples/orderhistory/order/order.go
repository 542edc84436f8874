// Package order is the domain of the example: an order that a consumer places with a restaurant, and what
// may happen to it until it is delivered or cancelled. It knows no database and no broker.
package order

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Definition makes orders an aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Order]("order",
	Created{}, Approved{}, Revised{}, Cancelled{}, PickedUp{}, Delivered{})

// Order is the state of an order. The zero value is the order before it is created.
type Order struct {
	Details
	Status       Status         `json:"status"`
	Delivery     DeliveryStatus `json:"deliveryStatus,omitempty"`
	CancelReason string         `json:"cancelReason,omitempty"`
}

// Details are what the consumer orders.
type Details struct {
	ConsumerID string    `json:"consumerId"`
	Restaurant string    `json:"restaurant"`
	Lines      Lines     `json:"lines"`
	CreatedAt  time.Time `json:"createdAt"` // milliseconds, UTC
}

// Line is one item of the menu.
type Line struct {
	Name       string `json:"name"`
	Quantity   int64  `json:"quantity"`
	PriceCents int64  `json:"priceCents"` // of one
}

// Lines is everything that an order has of the menu.
type Lines []Line

// TotalCents is what the lines cost together.
func (lines Lines) TotalCents() (total int64) {
	for _, line := range lines {
		total += line.Quantity * line.PriceCents
	}
	return total
}

// Status is how far an order has got with the restaurant.
type Status string

// DeliveryStatus is how far an order has got with the courier, empty before that.
type DeliveryStatus string

// An order waits for approval, is approved, and may be cancelled until it is picked up.
const (
	StatusApprovalPending Status         = "APPROVAL_PENDING"
	StatusApproved        Status         = "APPROVED"
	StatusCancelled       Status         = "CANCELLED"
	DeliveryPickedUp      DeliveryStatus = "PICKED_UP"
	DeliveryDelivered     DeliveryStatus = "DELIVERED"
)
