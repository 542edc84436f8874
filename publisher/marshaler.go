package publisher

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
)

// Event is the event that the journal stores for a message.
type Event struct {
	ID       string             // if empty, derived from the aggregate and the event's number
	Type     string             // the name of the event type
	Payload  []byte             // the payload to store
	Metadata aggregate.Metadata // the metadata to store
}

// Marshaler converts messages to events, for example with another payload. It must be safe for
// concurrent use. It must not change the message, and the event must not share its metadata map. An
// error refuses the whole Publish.
type Marshaler interface {
	Marshal(topic string, msg *message.Message) (Event, error)
}

// DefaultMarshaler stores a message as it is. The UUID becomes the event's id, and the metadata
// [NameKey] becomes its type. The payload may be any bytes.
//
// Only the metadata reason_poisoned is cut, to 1 KB. Watermill's PoisonQueue middleware stores the
// error of a handler there. A long error would make the message too large for the poison queue.
type DefaultMarshaler struct{}

// Marshal returns the event of a message. It never fails.
func (DefaultMarshaler) Marshal(_ string, msg *message.Message) (Event, error) {
	event := envelope.Event(msg)
	return Event{ID: event.ID, Type: event.Type, Payload: event.Payload, Metadata: event.Metadata}, nil
}
