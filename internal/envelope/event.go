package envelope

import (
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Event returns the event for a message. It shares only the payload with the message. A message
// without a UUID makes an event without an id, and the journal then derives one. The reason of a
// poisoned message is cut, because an error of any length must not keep the message out of a queue.
func Event(msg *message.Message) storage.Event {
	event := storage.Event{ID: msg.UUID, Type: msg.Metadata[NameKey], Payload: msg.Payload}
	for key, value := range msg.Metadata {
		if !Stored(key) {
			continue
		}
		if event.Metadata == nil {
			event.Metadata = make(aggregate.Metadata, len(msg.Metadata))
		}
		if key == ReasonPoisonedKey && len(value) > MaxReason {
			value = strings.ToValidUTF8(value[:MaxReason], "")
		}
		event.Metadata[key] = value
	}
	return event
}
