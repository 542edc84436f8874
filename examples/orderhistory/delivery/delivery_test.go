package delivery_test

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
)

func given(t *testing.T, events ...delivery.Event) *aggregatetest.Scenario[delivery.Delivery] {
	t.Helper()
	return aggregatetest.Given(t, delivery.Definition, events...)
}

func TestADeliveryIsScheduledPickedUpAndDelivered(t *testing.T) {
	t.Parallel()
	given(t).
		When(delivery.Schedule).Then(delivery.Scheduled{}).
		When(delivery.PickUp).Then(delivery.PickedUp{}).
		When(delivery.Deliver).Then(delivery.Delivered{}).
		ThenState(delivery.Delivery{Status: delivery.StatusDelivered})
}

func TestADeliveryRefusesWhatItsStatusDoesNotAllow(t *testing.T) {
	t.Parallel()
	stages := []delivery.Event{delivery.Scheduled{}, delivery.PickedUp{}, delivery.Delivered{}}
	statuses := []delivery.Status{"", delivery.StatusScheduled, delivery.StatusPickedUp, delivery.StatusDelivered}
	commands := []aggregate.Decision[delivery.Delivery]{delivery.Schedule, delivery.PickUp, delivery.Deliver}
	for n, status := range statuses {
		for m, command := range commands {
			if n != m {
				given(t, stages[:n]...).When(command).ThenError(delivery.Refused{status})
			}
		}
	}
}
