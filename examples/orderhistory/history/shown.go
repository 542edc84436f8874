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

// AwaitOrder returns an order once it shows an event of one of its services that the projection has
// applied: the position, which a transaction writes with the order, may be seen a moment before it.
// It looks again and again as long as the context lasts.
//
// Errors: the context's, with [ErrNotFound] where that is why, and with the order as it was seen
// last where it is not; journal.ErrThrottled.
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
