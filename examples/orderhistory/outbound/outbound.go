// Package outbound publishes what other systems may know of orders. These messages are a contract
// with programs of others, so they are types of their own: the events of the service can change
// without them.
package outbound

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
)

const (
	// Group is the consumer group that publishes the messages.
	Group = "outbound"
	// Topic is the topic of the broker.
	Topic = "ftgo-orders"
)

// Messages. The key is the id of the order.
type (
	// OrderPlaced is published for each new order.
	OrderPlaced struct {
		Order      string    `json:"order"`
		Consumer   string    `json:"consumer"`
		Restaurant string    `json:"restaurant"`
		TotalCents int64     `json:"totalCents"`
		PlacedAt   time.Time `json:"placedAt"`
	}
	// OrderChanged is published when the consumer has replaced the dishes.
	OrderChanged struct {
		Order      string `json:"order"`
		TotalCents int64  `json:"totalCents"`
	}
	// OrderEnded is published when there is nothing to deliver: the kitchen has declined the order,
	// or the consumer has cancelled it.
	OrderEnded struct {
		Order  string `json:"order"`
		Reason string `json:"reason"`
	}
)

func (OrderPlaced) EventType() string  { return "OrderPlaced" }
func (OrderChanged) EventType() string { return "OrderChanged" }
func (OrderEnded) EventType() string   { return "OrderEnded" }

// Forward makes an App publish the messages while it runs.
func Forward(app *millrace.App, broker message.Publisher) (*forward.Forwarder, error) {
	group := millrace.Group{Name: Group, Topics: []string{order.Definition.Type()}}
	return app.Forward(group, forward.Config{Publisher: broker}, Mappings()...)
}

// Mappings returns what becomes of the events.
func Mappings() []forward.Mapping {
	return []forward.Mapping{
		on(func(e order.Created, id string) OrderPlaced {
			return OrderPlaced{id, e.ConsumerID, e.Restaurant, total(e.Lines), e.CreatedAt}
		}),
		on(func(e order.Revised, id string) OrderChanged { return OrderChanged{id, total(e.Lines)} }),
		on(func(e order.Rejected, id string) OrderEnded { return OrderEnded{id, e.Reason} }),
		on(func(e order.Cancelled, id string) OrderEnded { return OrderEnded{id, e.Reason} }),
	}
}

// on returns the mapping of an event to one message.
func on[E order.Event, M any](message func(event E, order string) M) forward.Mapping {
	return forward.On(Topic, func(_ context.Context, e E, r *journal.Record) ([]M, error) {
		return []M{message(e, r.Aggregate.Value)}, nil
	})
}

func total(lines []order.Line) (cents int64) {
	for _, l := range lines {
		cents += l.Quantity * l.PriceCents
	}
	return cents
}
