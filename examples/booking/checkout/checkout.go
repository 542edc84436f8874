// Package checkout is the process manager of a booking. When seats are held it requests the
// payment. When the payment has ended it books or releases the seats.
package checkout

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/process"
)

// Checkout is the state of a process. Its id is the id of the booking.
type Checkout struct {
	Show    string
	Outcome string // "", "booked" or "released"
}

// These are the events of a process.
type (
	// Began records that seats of a show are held.
	Began struct{ Show string }
	// GaveUp records that the payment did not end in time.
	GaveUp struct{}
	// Ended records that the seats were booked or released.
	Ended struct{ Outcome string }
)

type step = process.Step[Checkout]

func (Began) EventType() string   { return "checkout.began.v1" }
func (GaveUp) EventType() string  { return "checkout.gave_up.v1" }
func (Ended) EventType() string   { return "checkout.ended.v1" }
func (e Began) Apply(c *Checkout) { c.Show = e.Show }
func (GaveUp) Apply(*Checkout)    {}
func (e Ended) Apply(c *Checkout) { c.Outcome = e.Outcome }

// These are the commands of the process.
type (
	// RequestPayment begins the payment of a booking.
	RequestPayment struct {
		Booking string
		Amount  int
	}
	// CancelPayment ends a payment that takes too long.
	CancelPayment struct{ Booking string }
	// BookSeats confirms a booking that was paid.
	BookSeats struct{ Show, Booking string }
	// ReleaseSeats ends a booking that was not paid.
	ReleaseSeats struct{ Show, Booking string }
)

// Route returns the payment that executes the command, and its decision.
func (c *RequestPayment) Route() (string, payment.Decision) {
	return c.Booking, payment.Request(c.Amount)
}

// Route returns the payment that executes the command, and its decision.
func (c *CancelPayment) Route() (string, payment.Decision) { return c.Booking, payment.Cancel() }

// Route returns the show that executes the command, and its decision.
func (c *BookSeats) Route() (string, show.Decision) { return c.Show, show.Book(c.Booking) }

// Route returns the show that executes the command, and its decision.
func (c *ReleaseSeats) Route() (string, show.Decision) { return c.Show, show.Release(c.Booking) }

const paymentTimeout = "payment"

// Define returns the definition. If a payment has not ended after patience, it is cancelled.
func Define(patience time.Duration) process.Definition[Checkout] {
	return process.Define(
		aggregate.Define[Checkout]("checkout", Began{}, GaveUp{}, Ended{}),
		process.On(func(e show.Held, _ process.Input) string { return e.Booking },
			func(_ Checkout, e show.Held, in process.Input) (step, error) {
				return process.Record(Began{in.Source.Value}).
					Send(RequestPayment{in.Process, e.Amount}).
					SetTimeout(paymentTimeout, patience), nil
			}).Starts(),
		process.OnTimeout(paymentTimeout, func(_ Checkout, in process.Input) (step, error) {
			return process.Record(GaveUp{}).Send(CancelPayment{in.Process}), nil
		}),
		process.On(theBooking[payment.WasCaptured], book),
		process.On(theBooking[payment.WasDeclined], release[payment.WasDeclined]),
		process.On(theBooking[payment.WasCancelled], release[payment.WasCancelled]),
	).EndsWhen(func(c Checkout) bool { return c.Outcome != "" })
}

// theBooking returns the id of the payment, which is the id of the booking.
func theBooking[E any](_ E, in process.Input) string { return in.Source.Value }

func book(c Checkout, _ payment.WasCaptured, in process.Input) (step, error) {
	return ends("booked", BookSeats{c.Show, in.Process}), nil
}

func release[E any](c Checkout, _ E, in process.Input) (step, error) {
	return ends("released", ReleaseSeats{c.Show, in.Process}), nil
}

func ends(outcome string, last any) step {
	return process.Record(Ended{outcome}).Send(last).CancelTimeout(paymentTimeout)
}
