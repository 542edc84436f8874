package order

import (
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Decision is a command to an order. One that asks for what is so already changes nothing, so a
// command may be sent again. With an error its events are ignored.
type Decision = aggregate.Decision[Order]

// Create places an order. Errors: [ErrInvalid], [ErrExists].
func Create(details Details) Decision {
	details.CreatedAt = details.CreatedAt.UTC().Truncate(time.Millisecond)
	return func(o Order) ([]Event, error) {
		if o.Status != "" {
			return nil, ErrExists
		}
		return []Event{Created{details}}, details.validate()
	}
}

// Approve takes a pending order. Errors: [ErrNotFound], [ErrNotAllowed].
func Approve() Decision {
	return func(o Order) ([]Event, error) {
		switch o.Status {
		case StatusApprovalPending:
			return []Event{Approved{}}, nil
		case StatusApproved:
			return nil, nil
		}
		return nil, o.refuse("approve")
	}
}

// Revise replaces the lines of an order that is not picked up yet. Errors: [ErrInvalid], [ErrNotFound],
// [ErrNotAllowed].
func Revise(lines Lines) Decision {
	return func(o Order) ([]Event, error) {
		switch {
		case !o.open():
			return nil, o.refuse("revise")
		case slices.Equal(o.Lines, lines):
			return nil, nil
		}
		return []Event{Revised{lines}}, lines.validate()
	}
}

// Cancel ends an order that is not picked up yet. Errors: [ErrInvalid], [ErrNotFound], [ErrNotAllowed].
func Cancel(reason string) Decision {
	return func(o Order) ([]Event, error) {
		switch {
		case o.Status == StatusCancelled:
			return nil, nil
		case !o.open():
			return nil, o.refuse("cancel")
		}
		return []Event{Cancelled{reason}}, within("reason", len(reason), 0, maxText, "bytes")
	}
}

// PickUp hands an approved order to the courier. Errors: [ErrNotFound], [ErrNotAllowed].
func PickUp() Decision {
	return func(o Order) ([]Event, error) {
		switch {
		case o.Delivery != "":
			return nil, nil
		case o.Status != StatusApproved:
			return nil, o.refuse("pick up")
		}
		return []Event{PickedUp{}}, nil
	}
}

// Deliver brings an order that was picked up. Errors: [ErrNotFound], [ErrNotAllowed].
func Deliver() Decision {
	return func(o Order) ([]Event, error) {
		switch o.Delivery {
		case DeliveryPickedUp:
			return []Event{Delivered{}}, nil
		case DeliveryDelivered:
			return nil, nil
		}
		return nil, o.refuse("deliver")
	}
}

// open tells that the kitchen can still change its plans.
func (o Order) open() bool {
	return (o.Status == StatusApprovalPending || o.Status == StatusApproved) && o.Delivery == ""
}
