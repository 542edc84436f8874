package payment_test

import (
	"testing"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/payment"
)

var (
	placed  = order.Placed{Customer: "ada", Amount: 4200}
	ofOrder = process.Input{Source: aggregate.ID{Type: "order", Value: "1"}}
)

func TestAnOrderIsCancelledThatIsNotPaidInTime(t *testing.T) {
	t.Parallel()
	processtest.Given(t, payment.Define(time.Minute)).
		When(placed, ofOrder).
		ThenProcess("1").
		ThenTimeouts(process.Timeout{Name: "payment", After: time.Minute}).
		WhenTimeout("payment", "1").
		ThenCommands(payment.CancelOrder{Order: "1"}).
		ThenEnded()
}

func TestAPaidOrderIsNotCancelled(t *testing.T) {
	t.Parallel()
	processtest.Given(t, payment.Define(time.Minute)).
		When(placed, ofOrder).
		When(order.Paid{}, ofOrder).
		ThenCancelled("payment").
		ThenEnded()
}
