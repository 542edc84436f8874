// Package saga is the process manager of the example. It leads an order to its approval: it
// reserves the customer's credit, creates the kitchen's ticket and authorises the payment. If one
// of these is refused, or there is no reply in time, it undoes the completed steps.
package saga

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/ordersaga/services"
	"github.com/millrace-dev/millrace/process"
)

// Saga is the state of a process.
type Saga struct {
	Customer string
	Total    int
	Outcome  string // empty until the process is over
}

// These are the events of a process.

type (
	// Begun begins a saga.
	Begun struct {
		Customer string
		Total    int
	}

	// Went records the next step.
	Went struct{ To string }

	// Ended records the end of a saga.
	Ended struct{ Outcome string }
)

func (Begun) EventType() string { return "order-saga.begun.v1" }
func (Went) EventType() string  { return "order-saga.went.v1" }
func (Ended) EventType() string { return "order-saga.ended.v1" }

func (e Begun) Apply(s *Saga) { s.Customer, s.Total = e.Customer, e.Total }
func (Went) Apply(*Saga)      {}
func (e Ended) Apply(s *Saga) { s.Outcome = e.Outcome }

// These are the commands of a process.

type (
	// ReserveCredit asks for credit of the customer.
	ReserveCredit struct {
		Customer, Order string
		Total           int
	}

	// ReleaseCredit undoes ReserveCredit.
	ReleaseCredit struct{ Customer, Order string }

	// CreateTicket asks the kitchen for a ticket.
	CreateTicket struct{ Order string }

	// CancelTicket undoes CreateTicket.
	CancelTicket struct{ Order string }

	// AuthorisePayment asks the bank.
	AuthorisePayment struct {
		Order string
		Total int
	}

	// ApproveOrder ends the order with success.
	ApproveOrder struct{ Order string }

	// RejectOrder ends the order without success.
	RejectOrder struct{ Order, Reason string }
)

// Patience is the time limit for all replies together.
const Patience = 10 * time.Second

// Answers is the timeout that ends a saga after Patience.
const Answers = "answers"

type step = process.Step[Saga]

// Definition defines the process manager. A process has the id of its order.
var Definition = process.Define(
	aggregate.Define[Saga]("order-saga", Begun{}, Went{}, Ended{}),
	process.On(source[services.OrderPlaced], func(_ Saga, e services.OrderPlaced, in process.Input) (step, error) {
		return process.Record(Begun(e)).
			Send(ReserveCredit{Customer: e.Customer, Order: in.Process, Total: e.Total}).
			SetTimeout(Answers, Patience), nil
	}).Starts(),
	process.On(func(e services.CreditReserved, _ process.Input) string { return e.Order },
		func(_ Saga, _ services.CreditReserved, in process.Input) (step, error) {
			return further("ticket", CreateTicket{in.Process}), nil
		}),
	process.On(func(e services.CreditRefused, _ process.Input) string { return e.Order },
		func(s Saga, _ services.CreditRefused, in process.Input) (step, error) {
			return s.reject(in.Process, "not enough credit"), nil
		}),
	process.On(source[services.TicketCreated], func(s Saga, _ services.TicketCreated, in process.Input) (step, error) {
		return further("payment", AuthorisePayment{in.Process, s.Total}), nil
	}),
	process.On(source[services.PaymentAuthorised], func(_ Saga, _ services.PaymentAuthorised, in process.Input) (step, error) {
		return process.Record(Ended{"approved"}).Send(ApproveOrder{in.Process}).CancelTimeout(Answers), nil
	}),
	process.On(source[services.PaymentRefused], func(s Saga, _ services.PaymentRefused, in process.Input) (step, error) {
		return s.reject(in.Process, "payment refused"), nil
	}),
	process.OnTimeout(Answers, func(s Saga, in process.Input) (step, error) {
		return s.reject(in.Process, "no answer in time"), nil
	}),
).EndsWhen(func(s Saga) bool { return s.Outcome != "" })

// source returns the id of the source aggregate, which is the id of the order.
func source[E any](_ E, in process.Input) string { return in.Source.Value }

func further(to string, command any) step {
	return process.Record(Went{to}).Send(command)
}

// reject ends a saga and undoes all steps, including those whose command may still be in progress.
func (s Saga) reject(order, reason string) step {
	return process.Record(Ended{reason}).
		Send(ReleaseCredit{s.Customer, order}, CancelTicket{order}, RejectOrder{order, reason}).
		CancelTimeout(Answers)
}
