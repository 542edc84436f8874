package envelope

import (
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
)

// occurredAtLayout is RFC 3339 with exactly three digits, so that the texts sort as the times do.
const occurredAtLayout = "2006-01-02T15:04:05.000Z07:00"

// smallMap is how many entries Go's maps hold before they grow.
const smallMap = 8

// Message returns the message that tells of a stored event. It shares the payload with the record and
// nothing else, so each delivery of an event can have a message of its own. An event without a type, as
// written by others, makes a message without [NameKey].
func Message(r *journal.Record) *message.Message {
	msg := message.NewMessage(r.EventID, r.Payload)
	if n := len(r.Metadata) + 5; n > smallMap {
		msg.Metadata = make(message.Metadata, n)
	}
	for key, value := range r.Metadata {
		if stored(key) {
			msg.Metadata[key] = value
		}
	}
	if r.EventType != "" {
		msg.Metadata[NameKey] = r.EventType
	}
	msg.Metadata[AggregateIDKey] = r.Aggregate.Value
	msg.Metadata[AggregateTypeKey] = r.Aggregate.Type
	msg.Metadata[SequenceNumberKey] = strconv.FormatUint(r.Number, 10)
	msg.Metadata[OccurredAtKey] = r.OccurredAt.UTC().Format(occurredAtLayout)
	return msg
}
