package services

import "github.com/millrace-dev/millrace/aggregate"

// Ticket is the kitchen's task for an order. It has the id of the order.
type Ticket struct{ Open, Cancelled bool }

// These are the events of a ticket.

type (
	// TicketCreated opens a ticket.
	TicketCreated struct{}

	// TicketCancelled closes a ticket, or prevents its opening.
	TicketCancelled struct{}
)

func (TicketCreated) EventType() string   { return "ticket.created.v1" }
func (TicketCancelled) EventType() string { return "ticket.cancelled.v1" }
func (TicketCreated) Apply(t *Ticket)     { t.Open = true }
func (TicketCancelled) Apply(t *Ticket)   { t.Open, t.Cancelled = false, true }

// Tickets defines the aggregate.
var Tickets = aggregate.Define[Ticket]("saga-ticket", TicketCreated{}, TicketCancelled{})

// CreateTicket opens a ticket, unless it was cancelled before.
func CreateTicket(t Ticket) (aggregate.Events[Ticket], error) {
	if t.Open || t.Cancelled {
		return nil, nil
	}
	return aggregate.Events[Ticket]{TicketCreated{}}, nil
}

// CancelTicket cancels a ticket, even before it is created.
func CancelTicket(t Ticket) (aggregate.Events[Ticket], error) {
	if t.Cancelled {
		return nil, nil
	}
	return aggregate.Events[Ticket]{TicketCancelled{}}, nil
}
