// Package payment is the process manager of an order: it cancels an order that is not paid in time.
package payment

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
)

// Payment is the state of a process. Its id is that of the order.
type Payment struct{ Ended bool }

// Events of a process.
type (
	// Began records that an order waits for its payment.
	Began struct{}
	// Ended records that the payment has come, or is too late.
	Ended struct{ Paid bool }
)

func (Began) EventType() string { return "payment.began.v1" }
func (Ended) EventType() string { return "payment.ended.v1" }
func (Began) Apply(*Payment)    {}
func (Ended) Apply(p *Payment)  { p.Ended = true }

// CancelOrder is the command that the process sends when the payment is too late. The order refuses
// it if the customer has paid meanwhile.
type CancelOrder struct{ Order string }

// EventType returns the name of the command.
func (CancelOrder) EventType() string { return "cancel-order" }

// Route returns the aggregate of the command and its decision.
func (c *CancelOrder) Route() (string, order.Decision) {
	return c.Order, order.Cancel("it was not paid in time")
}

type step = process.Step[Payment]

// Define returns the process in which a customer has some time to pay.
func Define(patience time.Duration) process.Definition[Payment] {
	return process.Define(
		aggregate.Define[Payment]("payment", Began{}, Ended{}),
		process.On(theOrder[order.Placed],
			func(Payment, order.Placed, process.Input) (step, error) {
				return process.Record(Began{}).SetTimeout("payment", patience), nil
			}).Starts(),
		process.On(theOrder[order.Paid],
			func(Payment, order.Paid, process.Input) (step, error) {
				return process.Record(Ended{Paid: true}).CancelTimeout("payment"), nil
			}),
		process.OnTimeout("payment", func(_ Payment, in process.Input) (step, error) {
			return process.Record(Ended{}).Send(CancelOrder{in.Process}), nil
		}),
	).EndsWhen(func(p Payment) bool { return p.Ended })
}

// theOrder returns the id of the process for an event of an order.
func theOrder[E any](_ E, in process.Input) string { return in.Source.Value }
