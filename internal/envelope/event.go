package envelope

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
)

// Event returns the event that a message stands for. It shares the payload with the message and
// nothing else. A message without a UUID makes an event without an id, which the journal then
// derives from the event's place.
func Event(msg *message.Message) eventlog.Event {
	event := eventlog.Event{ID: msg.UUID, Type: msg.Metadata[NameKey], Payload: msg.Payload}
	for key, value := range msg.Metadata {
		if !stored(key) {
			continue
		}
		if event.Metadata == nil {
			event.Metadata = make(aggregate.Metadata, len(msg.Metadata))
		}
		event.Metadata[key] = value
	}
	return event
}
