package envelope

import (
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
)

// occurredAt returns t as RFC 3339 in UTC with exactly three fractional digits, so that texts sort
// in the order of times. It formats time.RFC3339, which package time handles several times faster,
// and adds the digits.
func occurredAt(t time.Time) string {
	t = t.UTC()
	text := t.AppendFormat(make([]byte, 0, 32), time.RFC3339)
	millis := t.Nanosecond() / int(time.Millisecond)
	text[len(text)-1] = '.' // in place of the Z of UTC
	return string(append(text, byte('0'+millis/100), byte('0'+millis/10%10), byte('0'+millis%10), 'Z'))
}

// smallMap is the number of entries that Go's maps hold before they grow.
const smallMap = 8

// Message returns the message for a stored event, with its place. It shares only the payload with
// the record, so each delivery of an event can have its own message. An event without a type, for
// example of another program, makes a message without [NameKey].
func Message(r *journal.Record) *message.Message {
	msg := Plain(r)
	msg.Metadata[AggregateIDKey] = r.Aggregate.Value
	msg.Metadata[AggregateTypeKey] = r.Aggregate.Type
	msg.Metadata[SequenceNumberKey] = strconv.FormatUint(r.Number, 10)
	msg.Metadata[OccurredAtKey] = occurredAt(r.OccurredAt)
	return msg
}

// Plain is like [Message], without the place of the event.
func Plain(r *journal.Record) *message.Message {
	msg := message.NewMessage(r.EventID, r.Payload)
	if n := len(r.Metadata) + 5; n > smallMap {
		msg.Metadata = make(message.Metadata, n)
	}
	for key, value := range r.Metadata {
		if Stored(key) {
			msg.Metadata[key] = value
		}
	}
	if r.EventType != "" {
		msg.Metadata[NameKey] = r.EventType
	}
	return msg
}
