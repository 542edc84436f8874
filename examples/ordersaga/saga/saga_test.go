package saga_test

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/ordersaga/saga"
	"github.com/millrace-dev/millrace/examples/ordersaga/services"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

var of = process.Input{Source: aggregate.ID{Value: "o1"}}

var undone = []any{
	saga.ReleaseCredit{Customer: "anna", Order: "o1"}, saga.CancelTicket{Order: "o1"},
}

func TestAnOrderIsApprovedWhenAllAgree(t *testing.T) {
	t.Parallel()
	processtest.Given(t, saga.Definition).
		When(services.OrderPlaced{Customer: "anna", Total: 5}, of).
		Then(saga.Begun{Customer: "anna", Total: 5}).
		ThenCommands(saga.ReserveCredit{Customer: "anna", Order: "o1", Total: 5}).
		ThenTimeouts(process.Timeout{Name: saga.Answers, After: saga.Patience}).
		When(services.CreditReserved{Order: "o1", Amount: 5}).
		ThenCommands(saga.CreateTicket{Order: "o1"}).
		When(services.TicketCreated{}, of).
		ThenCommands(saga.AuthorisePayment{Order: "o1", Total: 5}).
		When(services.PaymentAuthorised{Amount: 5}, of).
		Then(saga.Ended{Outcome: "approved"}).
		ThenCommands(saga.ApproveOrder{Order: "o1"}).
		ThenCancelled(saga.Answers).
		ThenEnded().
		When(services.PaymentRefused{}, of).
		ThenIgnored()
}

func TestWhatWasDoneIsUndoneWhenThePaymentIsRefused(t *testing.T) {
	t.Parallel()
	processtest.Given(t, saga.Definition, saga.Begun{Customer: "anna", Total: 5}, saga.Went{To: "ticket"}, saga.Went{To: "payment"}).
		When(services.PaymentRefused{}, of).
		ThenCommands(append(undone, saga.RejectOrder{Order: "o1", Reason: "payment refused"})...).
		ThenCancelled(saga.Answers).
		ThenEnded()
}

func TestWhatMayBeOnItsWayIsUndoneWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	processtest.Given(t, saga.Definition).
		When(services.OrderPlaced{Customer: "anna", Total: 5}, of).
		WhenTimeout(saga.Answers, "o1").
		ThenCommands(append(undone, saga.RejectOrder{Order: "o1", Reason: "no answer in time"})...).
		ThenEnded()
}

func TestAnAnswerForAnOrderThatIsNotKnownIsIgnored(t *testing.T) {
	t.Parallel()
	processtest.Given(t, saga.Definition).
		When(services.CreditReserved{Order: "o1"}).
		ThenIgnored()
}
