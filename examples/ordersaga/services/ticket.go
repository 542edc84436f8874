package services

import "github.com/millrace-dev/millrace/aggregate"

// Ticket is what the kitchen works by. It has the id of its order.
type Ticket struct{ Open, Cancelled bool }

// What happens to a ticket.

type (
	// TicketCreated opens a ticket.
	TicketCreated struct{}

	// TicketCancelled ends it, or keeps it from being opened.
	TicketCancelled struct{}
)

func (TicketCreated) EventType() string   { return "ticket.created.v1" }
func (TicketCancelled) EventType() string { return "ticket.cancelled.v1" }
func (TicketCreated) Apply(t *Ticket)     { t.Open = true }
func (TicketCancelled) Apply(t *Ticket)   { t.Open, t.Cancelled = false, true }

// Tickets are the aggregates.
var Tickets = aggregate.Define[Ticket]("saga-ticket", TicketCreated{}, TicketCancelled{})

// CreateTicket opens one, unless it was cancelled before.
func CreateTicket(t Ticket) (aggregate.Events[Ticket], error) {
	if t.Open || t.Cancelled {
		return nil, nil
	}
	return aggregate.Events[Ticket]{TicketCreated{}}, nil
}

// CancelTicket ends one, also one that is not there yet.
func CancelTicket(t Ticket) (aggregate.Events[Ticket], error) {
	if t.Cancelled {
		return nil, nil
	}
	return aggregate.Events[Ticket]{TicketCancelled{}}, nil
}
