package ticket_test

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
)

var requested = ticket.Requested{Dishes: []string{"1 × Naan"}}

func given(t *testing.T, events ...ticket.Event) *aggregatetest.Scenario[ticket.Ticket] {
	t.Helper()
	return aggregatetest.Given(t, ticket.Definition, events...)
}

func TestATicketIsRequestedAcceptedPreparedAndFinished(t *testing.T) {
	t.Parallel()
	given(t).
		When(ticket.Request(0, requested.Dishes)).Then(requested).
		When(ticket.Accept).Then(ticket.Accepted{}).
		When(ticket.Prepare).Then(ticket.Preparing{}).
		When(ticket.Finish).Then(ticket.Ready{}).
		ThenState(ticket.Ticket{Status: ticket.StatusReady})
}

func TestALaterRevisionIsAcceptedAnewHoweverFarTheTicketHasGot(t *testing.T) {
	t.Parallel()
	other := ticket.Requested{Revision: 1, Dishes: []string{"2 × Samosa"}}
	stages := []ticket.Event{requested, ticket.Accepted{}, ticket.Preparing{}, ticket.Ready{}}
	for n := range stages {
		given(t, stages[:n+1]...).
			When(ticket.Request(1, other.Dishes)).Then(other).
			When(ticket.Request(1, other.Dishes)).ThenNothing().
			When(ticket.Request(0, requested.Dishes)).ThenNothing().
			When(ticket.Accept).Then(ticket.Accepted{Revision: 1})
	}
}

func TestATicketThatHasEndedIsNotRequestedAgain(t *testing.T) {
	t.Parallel()
	given(t, requested, ticket.Declined{}).When(ticket.Request(1, nil)).ThenNothing()
	given(t, requested, ticket.Cancelled{}).When(ticket.Request(1, nil)).ThenNothing()
}

func TestATicketIsCancelledAtAnyStage(t *testing.T) {
	t.Parallel()
	for _, stage := range [][]ticket.Event{{}, {ticket.Accepted{}}, {ticket.Preparing{}}, {ticket.Ready{}}, {ticket.Declined{}}} {
		given(t, append([]ticket.Event{requested}, stage...)...).When(ticket.Cancel).Then(ticket.Cancelled{}).
			ThenState(ticket.Ticket{Status: ticket.StatusCancelled})
	}
}

func TestATicketRefusesWhatItsStatusDoesNotAllow(t *testing.T) {
	t.Parallel()
	from := map[string]ticket.Status{
		"accept": ticket.StatusAwaitingAcceptance, "decline": ticket.StatusAwaitingAcceptance, "prepare": ticket.StatusAccepted, "finish": ticket.StatusPreparing,
	}
	commands := map[string]aggregate.Decision[ticket.Ticket]{
		"accept": ticket.Accept, "decline": ticket.Decline("sold out"), "prepare": ticket.Prepare, "finish": ticket.Finish,
	}
	for status, event := range map[ticket.Status]ticket.Event{
		ticket.StatusAwaitingAcceptance: requested,
		ticket.StatusAccepted:           ticket.Accepted{},
		ticket.StatusPreparing:          ticket.Preparing{},
		ticket.StatusReady:              ticket.Ready{},
		ticket.StatusDeclined:           ticket.Declined{},
		ticket.StatusCancelled:          ticket.Cancelled{},
	} {
		for name, command := range commands {
			if from[name] != status {
				given(t, event).When(command).ThenError(ticket.Refused{status})
			}
		}
	}
	for _, command := range commands {
		given(t).When(command).ThenError(ticket.Refused{})
	}
	given(t).When(ticket.Cancel).ThenError(ticket.Refused{})
}
