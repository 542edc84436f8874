// Package saga is the process manager of the guide: it reserves the credit of a customer for an
// order.
package saga

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

// Saga is the state of a process.
type Saga struct{ Customer, Outcome string }

type (
	// Begun begins a process.
	Begun struct{ Customer string }
	// Ended ends a process.
	Ended struct{ Outcome string }
)

func (Begun) EventType() string { return "saga.begun.v1" }
func (Ended) EventType() string { return "saga.ended.v1" }
func (e Begun) Apply(s *Saga)   { s.Customer = e.Customer }
func (e Ended) Apply(s *Saga)   { s.Outcome = e.Outcome }

type (
	// ReserveCredit asks for credit of the customer.
	ReserveCredit struct {
		Customer, Order string
		Total           int
	}
	// ReleaseCredit undoes ReserveCredit.
	ReleaseCredit struct{ Customer, Order string }
	// ApproveOrder ends the order with success.
	ApproveOrder struct{ Order string }
	// RejectOrder ends the order without success.
	RejectOrder struct{ Order string }
)

// Definition defines the process manager. A process has the id of its order.
var Definition = process.Define(
	aggregate.Define[Saga]("order-saga", Begun{}, Ended{}),
	process.On(
		func(_ OrderPlaced, in process.Input) string { return in.Source.Value },
		func(_ Saga, e OrderPlaced, in process.Input) (process.Step[Saga], error) {
			return process.Record(Begun{e.Customer}).
				Send(ReserveCredit{Customer: e.Customer, Order: in.Process, Total: e.Total}).
				SetTimeout("answers", 10*time.Second), nil
		}).Starts(),
	process.On(
		func(e CreditReserved, _ process.Input) string { return e.Order },
		func(_ Saga, _ CreditReserved, in process.Input) (process.Step[Saga], error) {
			return process.Record(Ended{"approved"}).
				Send(ApproveOrder{in.Process}).
				CancelTimeout("answers"), nil
		}),
	process.OnTimeout("answers", func(s Saga, in process.Input) (process.Step[Saga], error) {
		return process.Record(Ended{"no answer in time"}).
			Send(ReleaseCredit{s.Customer, in.Process}, RejectOrder{in.Process}), nil
	}),
).EndsWhen(func(s Saga) bool { return s.Outcome != "" })
