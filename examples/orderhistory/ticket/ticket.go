// Package ticket is the kitchen's service: the dishes to prepare, and their progress. A ticket has
// the id of its order.
package ticket

import "github.com/millrace-dev/millrace/aggregate"

// Definition defines the aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Ticket]("ticket", Requested{}, Accepted{}, Declined{}, Preparing{}, Ready{}, Cancelled{})

// Ticket is the state of a ticket. The zero value is the state before it is requested.
type Ticket struct {
	Status   Status
	Revision int // revision of the order
}

// Status is the progress of a ticket. It has the first four values in turn, unless the ticket is
// declined or cancelled.
type Status string

const (
	StatusAwaitingAcceptance, StatusAccepted Status = "AWAITING_ACCEPTANCE", "ACCEPTED"
	StatusPreparing, StatusReady             Status = "PREPARING", "READY_FOR_PICKUP"
	StatusDeclined, StatusCancelled          Status = "DECLINED", "CANCELLED"
)

// Event is an event of a ticket. Stored names of events never change.
type (
	Event     = aggregate.Event[Ticket]
	Events    = aggregate.Events[Ticket]
	Requested struct {
		Revision int
		Dishes   []string
	}
	Accepted  struct{ Revision int }
	Declined  struct{ Reason string }
	Preparing struct{}
	Ready     struct{}
	Cancelled struct{}
)

func (Requested) EventType() string { return "ticket.requested.v1" }
func (Accepted) EventType() string  { return "ticket.accepted.v1" }
func (Declined) EventType() string  { return "ticket.declined.v1" }
func (Preparing) EventType() string { return "ticket.preparing.v1" }
func (Ready) EventType() string     { return "ticket.ready.v1" }
func (Cancelled) EventType() string { return "ticket.cancelled.v1" }
func (e Requested) Apply(t *Ticket) { t.Status, t.Revision = StatusAwaitingAcceptance, e.Revision }
func (Accepted) Apply(t *Ticket)    { t.Status = StatusAccepted }
func (Declined) Apply(t *Ticket)    { t.Status = StatusDeclined }
func (Preparing) Apply(t *Ticket)   { t.Status = StatusPreparing }
func (Ready) Apply(t *Ticket)       { t.Status = StatusReady }
func (Cancelled) Apply(t *Ticket)   { t.Status = StatusCancelled }

// Refused reports that the status of a ticket does not allow a command. The status is empty if
// there is no such ticket.
type Refused struct{ Status }

func (e Refused) Error() string { return "the ticket's status is '" + string(e.Status) + "'" }

// Request asks the kitchen for dishes. For a later revision it asks again, at any stage.
func Request(revision int, dishes []string) aggregate.Decision[Ticket] {
	return func(t Ticket) (Events, error) {
		if t.Status != "" && revision <= t.Revision || t.Status == StatusDeclined || t.Status == StatusCancelled {
			return nil, nil
		}
		return Events{Requested{revision, dishes}}, nil
	}
}

// Accept accepts the current request, and Decline declines it. Prepare and Finish follow after
// Accept. Cancel ends the ticket.
func Accept(t Ticket) (Events, error)  { return t.from(StatusAwaitingAcceptance, Accepted{t.Revision}) }
func Prepare(t Ticket) (Events, error) { return t.from(StatusAccepted, Preparing{}) }
func Finish(t Ticket) (Events, error)  { return t.from(StatusPreparing, Ready{}) }
func Cancel(t Ticket) (Events, error)  { return t.from(t.Status, Cancelled{}) }
func Decline(reason string) aggregate.Decision[Ticket] {
	return func(t Ticket) (Events, error) { return t.from(StatusAwaitingAcceptance, Declined{reason}) }
}

func (t Ticket) from(status Status, event Event) (Events, error) {
	if t.Status != status || status == "" {
		return nil, Refused{t.Status}
	}
	return Events{event}, nil
}
