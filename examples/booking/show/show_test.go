package show_test

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/booking/show"
)

var scheduled = show.Scheduled{Price: 5, Seats: []string{"A1", "A2"}}

func TestASeatHasOneHolder(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, show.Definition, scheduled).
		When(show.Hold("b1", "ada", "A2", "A1", "A2")).
		Then(show.Held{Booking: "b1", Customer: "ada", Seats: []string{"A1", "A2"}, Amount: 10}).
		When(show.Hold("b2", "bob", "A1")).ThenError(show.ErrTaken)
}

func TestReleasedSeatsAreFree(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, show.Definition, scheduled, show.Held{Booking: "b1", Customer: "ada", Seats: []string{"A1"}, Amount: 5}).
		When(show.Release("b1")).Then(show.Released{Booking: "b1", Customer: "ada", Seats: []string{"A1"}}).
		When(show.Hold("b2", "bob", "A1")).Then(show.Held{Booking: "b2", Customer: "bob", Seats: []string{"A1"}, Amount: 5})
}

func TestABookingIsNotReleased(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, show.Definition, scheduled, show.Held{Booking: "b1", Customer: "ada", Seats: []string{"A1"}, Amount: 5}).
		When(show.Book("b1")).Then(show.Booked{Booking: "b1", Customer: "ada", Seats: []string{"A1"}}).
		When(show.Release("b1")).ThenError(show.ErrNoBooking)
}

func TestSeatsThatDoNotExistAreRefused(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, show.Definition).When(show.Hold("b1", "ada", "A1")).ThenError(show.ErrNotScheduled)
	aggregatetest.Given(t, show.Definition, scheduled).When(show.Hold("b1", "ada", "B7")).ThenError(show.ErrNoSuchSeat)
	aggregatetest.Given(t, show.Definition, scheduled).When(show.Hold("b1", "ada")).ThenError(show.ErrNoSeats)
}
