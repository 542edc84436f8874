// Package ticket is the kitchen's service: what is to be cooked, and how far that has got. A ticket
// has the id of its order.
package ticket

import "github.com/millrace-dev/millrace/aggregate"

// Definition makes tickets an aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Ticket]("ticket", Requested{}, Accepted{}, Declined{}, Preparing{}, Ready{}, Cancelled{})

// Ticket is the state of a ticket; the zero value is that before it is requested.
type Ticket struct {
	Status   Status
	Revision int // of the order
}

// Status is how far a ticket has got: through the first four in turn, unless it is declined or
// cancelled.
type Status string

const (
	StatusAwaitingAcceptance, StatusAccepted Status = "AWAITING_ACCEPTANCE", "ACCEPTED"
	StatusPreparing, StatusReady             Status = "PREPARING", "READY_FOR_PICKUP"
	StatusDeclined, StatusCancelled          Status = "DECLINED", "CANCELLED"
)

// Event is anything that happens. The names under which events are stored stay the same for good.
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

// Refused is why a ticket does not take a command: for its status, which is empty for one that is
// not there.
type Refused struct{ Status }

func (e Refused) Error() string { return "the ticket's status is '" + string(e.Status) + "'" }

// Request asks the kitchen for dishes; for those of a later revision once more, however far it has
// got with the others.
func Request(revision int, dishes []string) aggregate.Decision[Ticket] {
	return func(t Ticket) (Events, error) {
		if t.Status != "" && revision <= t.Revision || t.Status == StatusDeclined || t.Status == StatusCancelled {
			return nil, nil
		}
		return Events{Requested{revision, dishes}}, nil
	}
}

// Accept agrees to a request as it is now, and Decline does not. What is accepted goes through
// Prepare and Finish, or to waste by Cancel.
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
