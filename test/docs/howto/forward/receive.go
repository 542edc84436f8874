package forward

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// PaymentSettled is a message of another system.
type PaymentSettled struct {
	Order string `json:"order"`
}

// EventType returns the name of the message.
func (PaymentSettled) EventType() string { return "PaymentSettled" }

// Receive ships an order when its payment is settled.
func Receive(app *millrace.App, orders *repository.Repository[shop.Order], broker message.Subscriber) error {
	group := millrace.Group{Name: "payments", Subscriber: func(c *subscriber.Config) {
		c.Failures = subscriber.Park(20)
	}}
	inbox := millrace.Inbox{Subscriber: broker, Topics: []string{"payments.settled"}, Receive: receive.Config{
		Key: func(m *message.Message) string { return m.Metadata.Get("key") }, // order for each key
	}}
	_, err := app.Receive(group, inbox, command.Handler("ship", orders,
		func(c *PaymentSettled) (string, aggregate.Decision[shop.Order]) { return c.Order, shop.Ship }))
	return err
}
