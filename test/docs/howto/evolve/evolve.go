// Package evolve has orders whose events have changed.
package evolve

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type (
	// Order has the current events.
	Order struct {
		Customer, Currency string
		Total              int
		Paid, Shipped      bool
	}
	// Placed is order.placed.v2.
	Placed struct {
		Customer, Currency string // Currency is new in order.placed.v2
		Total              int
	}
	// Paid says that the customer has paid.
	Paid struct{}
	// Shipped says that the order is on its way.
	Shipped struct{}
)

func (Placed) EventType() string  { return "order.placed.v2" }
func (Paid) EventType() string    { return "order.paid.v1" }
func (Shipped) EventType() string { return "order.shipped.v1" }
func (e Placed) Apply(o *Order)   { o.Customer, o.Currency, o.Total = e.Customer, e.Currency, e.Total }
func (Paid) Apply(o *Order)       { o.Paid = true }
func (Shipped) Apply(o *Order)    { o.Shipped = true }

// Events of old types have the fields that the upcasters need, and no methods.
type (
	placedV1 struct {
		Customer string
		Total    int
	}
	completedV1 struct{ Prepaid bool }
)

// Orders reads events of old types as events of current types.
var Orders = aggregate.Define[Order]("order", Placed{}, Paid{}, Shipped{}).WithUpcasters(
	// A new version: there was one currency.
	aggregate.Upcast("order.placed.v1", func(old placedV1) Placed {
		return Placed{Customer: old.Customer, Currency: "EUR", Total: old.Total}
	}),
	// A new name for the same fields.
	aggregate.Rename("order.sent.v1", "order.shipped.v1"),
	// One event that is two today.
	aggregate.Split("order.completed.v1", func(old completedV1) (aggregate.Events[Order], error) {
		if old.Prepaid {
			return aggregate.Events[Order]{Shipped{}}, nil
		}
		return aggregate.Events[Order]{Paid{}, Shipped{}}, nil
	}),
	// An event without a meaning today. It keeps its number.
	aggregate.Drop("order.viewed.v1"),
)

// Check replays the events of all orders, and reports those that this program cannot read. It
// writes nothing.
func Check(ctx context.Context, j *journal.Journal, schema uint64) (faults error) {
	orders, err := repository.New(j, Orders, repository.Config{SnapshotSchema: schema})
	if err != nil {
		return err
	}
	for head, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: Orders.Type()}) {
		if err != nil {
			return errors.Join(faults, err)
		}
		if !head.DeletedAt.IsZero() {
			continue
		}
		if _, err := orders.Load(ctx, head.Aggregate.Value); err != nil {
			faults = errors.Join(faults, err)
		}
	}
	return faults
}
