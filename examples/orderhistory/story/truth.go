package story

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/repository"
)

// truth is what the history should show: made of the orders themselves, by the repository.
type truth map[string]history.Order

func loadTruth(ctx context.Context, orders *repository.Repository[order.Order], parallel int, plans []planned) (truth, error) {
	var mu sync.Mutex
	t := truth{}
	err := inParallel(ctx, parallel, plans, func(ctx context.Context, p planned) error {
		o, err := orders.Load(ctx, p.id)
		if err != nil {
			return fmt.Errorf("load the truth about %s: %w", p.id, err)
		}
		mu.Lock()
		defer mu.Unlock()
		t[p.id] = history.Order{
			OrderID: p.id, ConsumerID: o.State.ConsumerID, Restaurant: o.State.Restaurant,
			Lines: o.State.Lines, TotalCents: o.State.Lines.TotalCents(), CreationTime: o.State.CreatedAt,
			Status: o.State.Status, DeliveryStatus: o.State.Delivery, CancelReason: o.State.CancelReason,
			Version: o.Version,
		}
		return nil
	})
	return t, err
}

// events is how many there are: the version of an order is the number of its last event.
func (t truth) events() (n uint64) {
	for _, o := range t {
		n += o.Version
	}
	return n
}

// of gives the orders of a consumer that match.
func (t truth) of(consumer string, matches func(history.Order) bool) map[string]history.Order {
	orders := map[string]history.Order{}
	for id, o := range t {
		if o.ConsumerID == consumer && matches(o) {
			orders[id] = o
		}
	}
	return orders
}
