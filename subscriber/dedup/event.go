package dedup

import (
	"fmt"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
)

// UUID returns the UUID of a message. It is a KeyFactory for Watermill's Deduplicator. It
// recognises messages that the transport repeats, or that a publisher repeats with the same UUID.
func UUID(msg *message.Message) (string, error) { return msg.UUID, nil }

// Event returns a key of the aggregate and the number of the event of a message. It is a KeyFactory
// for Watermill's Deduplicator. If all messages of a topic are events of a journal, use [Positions]
// instead.
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

// eventOf returns the aggregate and the number of the event of a message. It reads the metadata
// that the subscriber sets, and not the context, since no transport carries a context.
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

// inOrder returns an error if the number of a message does not show which events were handled
// before.
func inOrder(msg *message.Message) error {
	switch {
	case msg.Metadata[envelope.PartKey] != "":
		return ErrSplit
	case msg.Metadata[envelope.DeferredKey] != "":
		return ErrDeferred
	}
	return nil
}

// text returns a text for an id. It begins with the length of the type, so that it is unique even
// if types or values contain dashes.
func text(id aggregate.ID) string { return strconv.Itoa(len(id.Type)) + ":" + id.String() }
