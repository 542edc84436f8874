package order_test

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate/aggregatetest"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
)

var placed = order.Placed{Customer: "ada", Amount: 4200}

func TestAnOrderIsPlacedOnce(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, order.Definition).
		When(order.Place("ada", 0)).ThenError(order.ErrInvalid).
		When(order.Place("ada", 4200)).Then(placed).
		When(order.Place("ada", 4200)).ThenError(order.ErrPlaced)
}

func TestAnOrderIsPaidOrCancelled(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, order.Definition).
		When(order.Pay).ThenError(order.ErrNotPlaced)
	aggregatetest.Given(t, order.Definition, placed).
		When(order.Pay).Then(order.Paid{}).
		When(order.Cancel("too late")).ThenError(order.ErrPaid)
	aggregatetest.Given(t, order.Definition, placed).
		When(order.Cancel("too late")).Then(order.Cancelled{Reason: "too late"}).
		When(order.Pay).ThenError(order.ErrCancelled)
}
