package dedup

import (
	"fmt"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
)

// UUID is a KeyFactory for Watermill's Deduplicator: the message's UUID. It recognises what the
// transport repeats, and what a publisher repeats with the same UUID.
func UUID(msg *message.Message) (string, error) { return msg.UUID, nil }

// Event is a KeyFactory for Watermill's Deduplicator: the aggregate and the number of the event
// that a forwarded message is. Where all of a topic's messages are such, [Positions] is the better
// choice.
//
// Errors: [ErrNoEvent].
func Event(msg *message.Message) (string, error) {
	id, number, err := eventOf(msg)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s#%d", text(id), number)
	if part := msg.Metadata[envelope.PartKey]; part != "" {
		key += " " + part
	}
	return key, nil
}

// eventOf reads what the subscriber has written into the metadata, not into the context, which no
// transport carries.
func eventOf(msg *message.Message) (aggregate.ID, uint64, error) {
	id, err := aggregate.NewID(msg.Metadata[envelope.AggregateTypeKey], msg.Metadata[envelope.AggregateIDKey])
	if err != nil {
		return aggregate.ID{}, 0, noEvent(msg, "does not name its aggregate ("+err.Error()+")")
	}
	number, err := strconv.ParseUint(msg.Metadata[envelope.SequenceNumberKey], 10, 64)
	if err != nil || number == 0 {
		return aggregate.ID{}, 0, noEvent(msg, fmt.Sprintf(
			"has %q as its sequence_number, which is not a number from 1", msg.Metadata[envelope.SequenceNumberKey]))
	}
	return id, number, nil
}

// inOrder reports a message whose number does not say which events were handled before.
func inOrder(msg *message.Message) error {
	switch {
	case msg.Metadata[envelope.PartKey] != "":
		return ErrPart
	case msg.Metadata[envelope.DeferredKey] != "":
		return ErrDeferred
	}
	return nil
}

// text differs for ids that read the same, by the length of the type.
func text(id aggregate.ID) string { return strconv.Itoa(len(id.Type)) + ":" + id.String() }
