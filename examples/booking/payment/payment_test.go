package payment_test

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/booking/payment"
)

func TestACancellationThatOvertakesTheRequestEndsThePayment(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, payment.Definition).
		When(payment.Cancel()).Then(payment.WasCancelled{}).
		When(payment.Request(5)).ThenError(payment.ErrPast)
}

func TestAChargeAfterTheCancellationIsRefunded(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, payment.Definition, payment.WasRequested{Amount: 5}).
		When(payment.Cancel()).Then(payment.WasCancelled{}).
		When(payment.Capture()).Then(payment.RefundRequested{}).
		When(payment.Refund()).Then(payment.WasRefunded{}).
		When(payment.Capture()).ThenError(payment.ErrPast)
}
