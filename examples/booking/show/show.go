// Package show is the aggregate of a show in a theatre. It decides who holds and who has booked
// which seats.
package show

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
)

// Show is the state of a show.
type Show struct {
	Price int // price of a seat, in cents
	// The booking of each seat, or "" for a free seat. Nil until the show is scheduled.
	Seats    map[string]string
	Bookings map[string]Booking
}

// Booking is a customer's hold on seats, which the payment makes final.
type Booking struct {
	Customer string
	Seats    []string
	Booked   bool
}

// These are the events of a show.
type (
	// Scheduled adds a show.
	Scheduled struct {
		Price int
		Seats []string
	}
	// Held begins a booking. No other customer can hold the seats until the payment has ended.
	Held struct {
		Booking, Customer string
		Seats             []string
		Amount            int
	}
	// Booked confirms a booking that was paid.
	Booked struct {
		Booking, Customer string
		Seats             []string
	}
	// Released ends a booking that was not paid.
	Released struct {
		Booking, Customer string
		Seats             []string
	}
)

func (Scheduled) EventType() string { return "show.scheduled.v1" }
func (Held) EventType() string      { return "show.held.v1" }
func (Booked) EventType() string    { return "show.booked.v1" }
func (Released) EventType() string  { return "show.released.v1" }

// Definition defines the aggregate.
var Definition = aggregate.Define[Show]("show", Scheduled{}, Held{}, Booked{}, Released{})

func (e Scheduled) Apply(s *Show) {
	s.Price, s.Seats, s.Bookings = e.Price, map[string]string{}, map[string]Booking{}
	for _, seat := range e.Seats {
		s.Seats[seat] = ""
	}
}

func (e Held) Apply(s *Show) {
	s.Bookings[e.Booking] = Booking{Customer: e.Customer, Seats: e.Seats}
	for _, seat := range e.Seats {
		s.Seats[seat] = e.Booking
	}
}

func (e Booked) Apply(s *Show) {
	b := s.Bookings[e.Booking]
	b.Booked = true
	s.Bookings[e.Booking] = b
}

func (e Released) Apply(s *Show) {
	delete(s.Bookings, e.Booking)
	for _, seat := range e.Seats {
		s.Seats[seat] = ""
	}
}

// These errors refuse a command.
var (
	ErrNotScheduled = errors.New("there is no such show")
	ErrScheduled    = errors.New("the show is scheduled already")
	ErrNoSeats      = errors.New("name at least one seat")
	ErrManySeats    = errors.New("a show has at most 1000 seats")
	ErrManyAtOnce   = errors.New("a booking has at most 20 seats")
	ErrHeld         = errors.New("the booking has been made already")
	ErrTaken        = errors.New("the seat is taken")
	ErrNoSuchSeat   = errors.New("there is no such seat")
	ErrNoBooking    = errors.New("there is no such booking")
)

// Decision decides on a show.
type Decision = aggregate.Decision[Show]

type events = aggregate.Events[Show]

// Schedule adds a show.
func Schedule(price int, seats ...string) Decision {
	return func(s Show) (events, error) {
		switch {
		case s.Seats != nil:
			return nil, ErrScheduled
		case len(seats) == 0:
			return nil, ErrNoSeats
		case len(seats) > 1000:
			return nil, ErrManySeats
		}
		return events{Scheduled{price, seats}}, nil
	}
}

// Hold begins a booking of free seats.
func Hold(booking, customer string, seats ...string) Decision {
	return func(s Show) (events, error) {
		seats := slices.Compact(slices.Sorted(slices.Values(seats)))
		switch {
		case s.Seats == nil:
			return nil, ErrNotScheduled
		case len(seats) == 0:
			return nil, ErrNoSeats
		}
		if _, exists := s.Bookings[booking]; exists {
			return nil, ErrHeld
		}
		if len(seats) > 20 {
			return nil, ErrManyAtOnce
		}
		for _, seat := range seats {
			holder, exists := s.Seats[seat]
			if !exists {
				return nil, fmt.Errorf("%w: %s", ErrNoSuchSeat, seat)
			}
			if holder != "" {
				return nil, fmt.Errorf("%w: %s", ErrTaken, seat)
			}
		}
		return events{Held{booking, customer, seats, s.Price * len(seats)}}, nil
	}
}

// Book confirms a booking that was paid.
func Book(booking string) Decision {
	return func(s Show) (events, error) {
		b, exists := s.Bookings[booking]
		if !exists || b.Booked {
			return nil, ErrNoBooking
		}
		return events{Booked{booking, b.Customer, b.Seats}}, nil
	}
}

// Release ends a booking that was not paid. Its seats are free again.
func Release(booking string) Decision {
	return func(s Show) (events, error) {
		b, exists := s.Bookings[booking]
		if !exists || b.Booked {
			return nil, ErrNoBooking
		}
		return events{Released{booking, b.Customer, b.Seats}}, nil
	}
}
