package publisher

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
)

// Event is what the journal stores of a message.
type Event struct {
	ID       string // empty for one that the journal derives from the event's aggregate and number
	Type     string
	Payload  []byte
	Metadata aggregate.Metadata
}

// Marshaler makes events of messages, for example with a payload that is compressed or encrypted.
// Many goroutines call it at once. The event must not share its metadata map with the message, and
// the message must not change. An error refuses the whole Publish.
type Marshaler interface {
	Marshal(topic string, msg *message.Message) (Event, error)
}

// DefaultMarshaler stores a message as it is: the UUID is the event's id, the metadata [NameKey]
// its type. The payload may be anything.
type DefaultMarshaler struct{}

// Marshal never fails.
func (DefaultMarshaler) Marshal(_ string, msg *message.Message) (Event, error) {
	event := envelope.Event(msg)
	return Event{ID: event.ID, Type: event.Type, Payload: event.Payload, Metadata: event.Metadata}, nil
}
