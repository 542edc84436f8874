// Package pubsub is the code of docs/howto/migrate-from-watermill.md. It moves orders whose events
// are messages of a topic in SQL or Kafka.
package pubsub

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// copied is the metadata of events that came from the topic.
const copied = "copied"

// An Importer copies the messages of a topic to the journal, once each.
type Importer struct {
	Orders *repository.Repository[shop.Order]
}

// Handle is a handler of the topic, in a consumer group of its own that begins with the oldest
// message.
func (i Importer) Handle(msg *message.Message) error {
	if msg.Metadata.Get(forward.SequenceNumberKey) != "" {
		return nil // it came from the journal, by Forward
	}
	event, err := decode(msg)
	if err != nil {
		return err
	}
	ctx := aggregate.ContextWithMetadata(msg.Context(), aggregate.Metadata{copied: "true"})
	_, err = i.Orders.Execute(ctx, msg.Metadata.Get("order"), func(shop.Order) (aggregate.Events[shop.Order], error) {
		return aggregate.Events[shop.Order]{event}, nil
	}, repository.WithCommandID("copy-"+msg.UUID))
	return err
}

// decode returns the event of a message.
func decode(msg *message.Message) (aggregate.Event[shop.Order], error) {
	switch name := (cqrs.JSONMarshaler{}).NameFromMessage(msg); name {
	case "OrderPlaced":
		var e shop.Placed
		err := json.Unmarshal(msg.Payload, &e)
		return e, err
	case "OrderShipped":
		var e shop.Shipped
		err := json.Unmarshal(msg.Payload, &e)
		return e, err
	default:
		return nil, fmt.Errorf("message %s has the unknown name %q: add it to decode", msg.UUID, name)
	}
}

// Copied reports whether the handler of an event handles one that came from the topic.
func Copied(ctx context.Context) bool {
	msg := cqrs.OriginalMessageFromCtx(ctx)
	return msg != nil && msg.Metadata.Get(copied) != ""
}

// Forward publishes new events to the former topic, for consumers that still read it.
func Forward(app *millrace.App, topic string, broker message.Publisher) error {
	placed := func(_ context.Context, e shop.Placed, r *journal.Record) ([]OrderPlaced, error) {
		if r.Metadata[copied] != "" {
			return nil, nil // the topic has it
		}
		return []OrderPlaced{OrderPlaced(e)}, nil
	}
	shipped := func(_ context.Context, e shop.Shipped, r *journal.Record) ([]OrderShipped, error) {
		if r.Metadata[copied] != "" {
			return nil, nil
		}
		return []OrderShipped{OrderShipped(e)}, nil
	}
	_, err := app.Forward(millrace.Group{Name: "former-topic", Topics: []string{"order"}}, forward.Config{
		Publisher: broker,
		Prepare: func(msg *message.Message, _ *journal.Record) error {
			msg.Metadata.Set("order", msg.Metadata.Get(forward.KeyKey)) // as the former ones
			return nil
		},
	}, forward.On(topic, placed), forward.On(topic, shipped))
	return err
}

// OrderPlaced is a message of the former topic.
type OrderPlaced shop.Placed

// OrderShipped is a message of the former topic.
type OrderShipped shop.Shipped

// EventType returns the name of the message.
func (OrderPlaced) EventType() string { return "OrderPlaced" }

// EventType returns the name of the message.
func (OrderShipped) EventType() string { return "OrderShipped" }
