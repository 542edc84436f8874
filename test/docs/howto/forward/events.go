// Package forward is the code of docs/howto/forward-events.md and receive-messages.md.
package forward

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// OrderPlaced is what other systems know of an order.
type OrderPlaced struct {
	Order string `json:"order"`
	Total int    `json:"total"`
}

// EventType returns the name of the message.
func (OrderPlaced) EventType() string { return "OrderPlaced" }

// Mappings lists the messages that other systems receive on the topic "orders" of a broker.
func Mappings() []forward.Mapping {
	return []forward.Mapping{
		forward.On("orders", func(_ context.Context, e shop.Placed, r *journal.Record) ([]OrderPlaced, error) {
			return []OrderPlaced{{Order: r.Aggregate.Value, Total: e.Total}}, nil
		}),
	}
}

// Forward publishes the events of orders to a broker.
func Forward(app *millrace.App, broker message.Publisher) error {
	_, err := app.Forward(millrace.Group{Name: "orders-out", Topics: []string{"order"}},
		forward.Config{Publisher: broker}, Mappings()...)
	return err
}

// Channels describes the messages for a catalogue.
func Channels() []catalogue.Channel { return catalogue.Forwarded(Mappings()...) }
