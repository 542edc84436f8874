package process_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
)

// Dunning is the process of a customer who has refused invoices.
type Dunning struct{ Refused int }

type (
	Refused struct{ Invoice string }
	Retried struct{ Invoice string }

	// InvoiceRefused is an event of an invoice.
	InvoiceRefused struct{ Customer, Invoice string }
	// Charge is a command.
	Charge struct{ Invoice string }
)

func (Refused) EventType() string        { return "dunning.refused" }
func (Retried) EventType() string        { return "dunning.retried" }
func (InvoiceRefused) EventType() string { return "invoice.refused" }
func (Refused) Apply(d *Dunning)         { d.Refused++ }
func (Retried) Apply(*Dunning)           {}

var dunnings = process.Define(aggregate.Define[Dunning]("dunning", Refused{}, Retried{}),
	process.On(
		func(e InvoiceRefused, _ process.Input) string { return e.Customer },
		func(_ Dunning, e InvoiceRefused, _ process.Input) (process.Step[Dunning], error) {
			return process.Record(Refused{e.Invoice}).SetTimeout("retry/"+e.Invoice, time.Hour), nil
		}).Starts(),
	process.OnTimeout("retry/", func(_ Dunning, in process.Input) (process.Step[Dunning], error) {
		return process.Record(Retried{in.TimeoutKey}).Send(Charge{Invoice: in.TimeoutKey}), nil
	}),
)

// A process has a timeout for each of several invoices. The name of the reaction ends in a slash,
// and the names of the timeouts are that name and a key.
func ExampleOnTimeout() {
	t := dunningTest{} // a test passes its *testing.T

	processtest.Given(t, dunnings).
		When(InvoiceRefused{Customer: "anna", Invoice: "i1"}).
		When(InvoiceRefused{Customer: "anna", Invoice: "i2"}).
		WhenTimeout("retry/i1", "anna").
		ThenCommands(Charge{Invoice: "i1"}).
		WhenTimeout("retry/i1", "anna")
	// Output:
	// When 4 (timeout "retry/i1"): the timeout is not set any more:
	// it has fired in When 3 (timeout "retry/i1"); set are "retry/i2"
}

// dunningTest stands in for *testing.T, which an example does not have.
type dunningTest struct{ testing.TB }

func (dunningTest) Helper()        {}
func (dunningTest) Cleanup(func()) {}
func (dunningTest) Fatalf(format string, args ...any) {
	fmt.Println(strings.Replace(fmt.Sprintf(format, args...), ": it", ":\nit", 1))
}
