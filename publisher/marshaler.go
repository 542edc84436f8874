package publisher

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/journal"
)

// Marshaler turns a message into the event that is stored, for example with a payload that is compressed
// or encrypted. It is called by many goroutines at once. The event must not share its metadata map with the
// message, and the message must stay as it is. An error refuses the whole Publish.
type Marshaler interface {
	Marshal(topic string, msg *message.Message) (journal.Event, error)
}

// DefaultMarshaler stores a message as it is: the UUID is the event's id, the metadata [NameKey] its type.
// The payload may be anything.
type DefaultMarshaler struct{}

// Marshal never fails.
func (DefaultMarshaler) Marshal(_ string, msg *message.Message) (journal.Event, error) {
	return envelope.Event(msg), nil
}
