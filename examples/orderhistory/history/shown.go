package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
)

// AwaitOrder returns an order when it shows an event that the projection has applied. A reader can
// see the position a moment before the order, although one transaction writes both. AwaitOrder
// polls until ctx ends.
//
// Errors: journal.ErrThrottled, and the error of ctx. If ctx ends, AwaitOrder also returns the
// order as it was last read. If the history does not have the order, the error is an [ErrNotFound]
// too.
func (d *OrderHistoryDao) AwaitOrder(ctx context.Context, event aggregate.ID, number uint64) (last Order, err error) {
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		o, err := d.FindOrder(ctx, event.Value)
		switch {
		case err == nil && o.Versions.of(event.Type) >= number:
			return o, nil
		case err == nil:
			last = o
			err = fmt.Errorf("await event %d of %s", number, event)
		case !errors.Is(err, ErrNotFound):
			return last, err
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (v Versions) of(aggregateType string) uint64 {
	switch aggregateType {
	case order.Definition.Type():
		return v.Order
	case ticket.Definition.Type():
		return v.Ticket
	case delivery.Definition.Type():
		return v.Delivery
	}
	return 0
}
