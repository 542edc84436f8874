package envelope

import (
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
)

// occurredAt is RFC 3339 in UTC with exactly three digits, so that the texts sort as the times do.
// The time package is several times faster with the layout that it knows, which has no digits.
func occurredAt(t time.Time) string {
	t = t.UTC()
	text := t.AppendFormat(make([]byte, 0, 32), time.RFC3339)
	millis := t.Nanosecond() / int(time.Millisecond)
	text[len(text)-1] = '.' // where the Z of UTC stood
	return string(append(text, byte('0'+millis/100), byte('0'+millis/10%10), byte('0'+millis%10), 'Z'))
}

// smallMap is how many entries Go's maps hold before they grow.
const smallMap = 8

// Message returns the message for a stored event. It shares the payload with the record
// and nothing else, so each delivery of an event can have a message of its own. An event without a
// type, as written by others, makes a message without [NameKey].
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
	msg.Metadata[OccurredAtKey] = occurredAt(r.OccurredAt)
	return msg
}
