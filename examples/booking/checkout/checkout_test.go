package checkout_test

import (
	"testing"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/booking/checkout"
	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

var (
	held      = show.Held{Booking: "b1", Customer: "ada", Seats: []string{"A1"}, Amount: 5}
	ofShow    = process.Input{Source: aggregate.ID{Type: "show", Value: "hamlet"}}
	ofPayment = process.Input{Source: aggregate.ID{Type: "payment", Value: "b1"}}
)

func TestSeatsAreBookedWhenThePaymentIsCaptured(t *testing.T) {
	t.Parallel()
	processtest.Given(t, checkout.Define(time.Minute)).
		When(held, ofShow).
		ThenProcess("b1").
		ThenCommands(checkout.RequestPayment{Booking: "b1", Amount: 5}).
		When(payment.WasCaptured{}, ofPayment).
		ThenCommands(checkout.BookSeats{Show: "hamlet", Booking: "b1"}).
		ThenEnded()
}

func TestSeatsAreReleasedWhenThePaymentIsCancelledAfterTheTimeout(t *testing.T) {
	t.Parallel()
	processtest.Given(t, checkout.Define(time.Minute)).
		When(held, ofShow).
		WhenTimeout("payment", "b1").
		ThenCommands(checkout.CancelPayment{Booking: "b1"}).
		When(payment.WasCancelled{}, ofPayment).
		ThenCommands(checkout.ReleaseSeats{Show: "hamlet", Booking: "b1"}).
		ThenEnded()
}

func TestSeatsAreBookedWhenThePaymentWasFasterThanItsCancellation(t *testing.T) {
	t.Parallel()
	processtest.Given(t, checkout.Define(time.Minute)).
		When(held, ofShow).
		WhenTimeout("payment", "b1").
		When(payment.WasCaptured{}, ofPayment).
		ThenCommands(checkout.BookSeats{Show: "hamlet", Booking: "b1"}).
		ThenEnded()
}
