// Package forward is the code of docs/howto/forward-events.md and receive-messages.md.
package forward

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
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

// Forward publishes the events of orders to the topic "orders" of a broker.
func Forward(app *millrace.App, broker message.Publisher) error {
	_, err := app.Forward(millrace.Group{Name: "orders-out", Topics: []string{"order"}}, forward.Config{Publisher: broker},
		forward.On("orders", func(_ context.Context, e shop.Placed, r *journal.Record) ([]OrderPlaced, error) {
			return []OrderPlaced{{Order: r.Aggregate.Value, Total: e.Total}}, nil
		}),
	)
	return err
}
