package story

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

// writers carry out plans.
type writers struct {
	orders api.Orders
	// progress gets a value for each command that was carried out or refused.
	progress chan<- struct{}

	accepted, refused, conflicts atomic.Int64
}

func (w *writers) run(ctx context.Context, parallel int, plans []planned) error {
	return inParallel(ctx, parallel, plans, func(ctx context.Context, p planned) error {
		if err := w.execute(ctx, p.id, order.Create(p.details)); err != nil {
			return err
		}
		meet := meeting(ctx, len(p.writers))
		return inParallel(ctx, len(p.writers), p.writers, func(ctx context.Context, commands []order.Decision) error {
			for n, command := range commands {
				if n == 0 {
					command = meet(command)
				}
				if err := w.execute(ctx, p.id, command); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (w *writers) execute(ctx context.Context, id string, command order.Decision) error {
	attempts := int64(0)
	_, err := w.orders.Execute(ctx, id, func(o order.Order) ([]order.Event, error) {
		attempts++ // a decision runs again after each conflict
		return command(o)
	})
	switch {
	case err == nil:
		w.accepted.Add(1)
	case errors.Is(err, order.ErrNotAllowed):
		w.refused.Add(1)
	default:
		return fmt.Errorf("command to %s: %w", id, err)
	}
	w.conflicts.Add(max(0, attempts-1))
	w.progress <- struct{}{}
	return nil
}

// meeting makes the first run of several decisions wait for one another, so that all of them decide on the same
// version of an order, and all but one conflict.
func meeting(ctx context.Context, parties int) func(order.Decision) order.Decision {
	var missing atomic.Int64
	missing.Store(int64(parties))
	complete := make(chan struct{})
	return func(decide order.Decision) order.Decision {
		var arrive sync.Once
		return func(o order.Order) ([]order.Event, error) {
			arrive.Do(func() {
				if missing.Add(-1) == 0 {
					close(complete)
				}
				select {
				case <-complete:
				case <-ctx.Done():
				}
			})
			return decide(o)
		}
	}
}
