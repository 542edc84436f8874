// Package payment is the aggregate of a payment. A payment ends once, whatever the bank replies,
// and in whichever order commands and replies arrive.
package payment

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
)

// Payment is the state of a payment.
type Payment struct {
	Amount int
	Status Status
}

// Status is the progress of a payment.
type Status string

// A payment ends as Captured, Declined, Cancelled or Refunded.
const (
	Requested Status = "requested"
	Captured  Status = "captured" // the customer was charged
	Declined  Status = "declined" // the bank has refused
	// The bank did not reply in time.
	Cancelled Status = "cancelled"
	// The customer was charged after the payment was cancelled.
	Refunding Status = "refunding"
	Refunded  Status = "refunded"
)

// Ended reports whether the payment has ended. It changes again only if the bank replies late.
func (s Status) Ended() bool {
	return s == Captured || s == Declined || s == Cancelled || s == Refunded
}

// These are the events of a payment.
type (
	// WasRequested asks the bank to charge the customer.
	WasRequested struct{ Amount int }
	// WasCaptured records that the bank has charged the customer.
	WasCaptured struct{}
	// WasDeclined records that the bank has refused.
	WasDeclined struct{ Reason string }
	// WasCancelled records that the payment was cancelled.
	WasCancelled struct{}
	// RefundRequested asks the bank to return the money of a payment that was cancelled.
	RefundRequested struct{}
	// WasRefunded records that the bank has returned the money.
	WasRefunded struct{}
)

func (WasRequested) EventType() string    { return "payment.requested.v1" }
func (WasCaptured) EventType() string     { return "payment.captured.v1" }
func (WasDeclined) EventType() string     { return "payment.declined.v1" }
func (WasCancelled) EventType() string    { return "payment.cancelled.v1" }
func (RefundRequested) EventType() string { return "payment.refund_requested.v1" }
func (WasRefunded) EventType() string     { return "payment.refunded.v1" }

func (e WasRequested) Apply(p *Payment)  { *p = Payment{e.Amount, Requested} }
func (WasCaptured) Apply(p *Payment)     { p.Status = Captured }
func (WasDeclined) Apply(p *Payment)     { p.Status = Declined }
func (WasCancelled) Apply(p *Payment)    { p.Status = Cancelled }
func (RefundRequested) Apply(p *Payment) { p.Status = Refunding }
func (WasRefunded) Apply(p *Payment)     { p.Status = Refunded }

// Definition defines the aggregate. The id of a payment is the id of its booking.
var Definition = aggregate.Define[Payment]("payment",
	WasRequested{}, WasCaptured{}, WasDeclined{}, WasCancelled{}, RefundRequested{}, WasRefunded{})

// ErrPast refuses a command that is late or repeated.
var ErrPast = errors.New("the payment is past that")

// Decision decides on a payment.
type Decision = aggregate.Decision[Payment]

type events = aggregate.Events[Payment]

// Request asks for a payment.
func Request(amount int) Decision { return from("", WasRequested{amount}) }

// Decline reports that the bank has not charged the customer.
func Decline(reason string) Decision { return from(Requested, WasDeclined{reason}) }

// Cancel cancels a payment. It may arrive before Request, which is refused then: the commands of
// different steps of a process may overtake each other.
func Cancel() Decision {
	return func(p Payment) (events, error) {
		if p.Status != "" && p.Status != Requested {
			return nil, ErrPast
		}
		return events{WasCancelled{}}, nil
	}
}

// Refund reports that the bank has returned the money.
func Refund() Decision { return from(Refunding, WasRefunded{}) }

// Capture reports that the bank has charged the customer. If the payment was cancelled before, it
// asks for a refund.
func Capture() Decision {
	return func(p Payment) (events, error) {
		switch p.Status {
		case Requested:
			return events{WasCaptured{}}, nil
		case Cancelled:
			return events{RefundRequested{}}, nil
		default:
			return nil, ErrPast
		}
	}
}

func from(status Status, e aggregate.Event[Payment]) Decision {
	return func(p Payment) (events, error) {
		if p.Status != status {
			return nil, ErrPast
		}
		return events{e}, nil
	}
}
