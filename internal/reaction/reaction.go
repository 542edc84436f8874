// Package reaction contains code that the typed reactions of projections and process managers
// share.
package reaction

import (
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Event is a typed event. EventType returns the type name under which it is stored.
type Event interface{ EventType() string }

// EventType returns the event type of the zero value of E. It returns "" if the zero value has no
// event type, as for interfaces and most pointers.
func EventType[E Event]() (name string) {
	var zero E
	if any(zero) == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	return zero.EventType()
}

// Decode decodes the event of a record.
func Decode[E Event](codec aggregate.Codec, r *journal.Record) (event E, err error) {
	if err := codec.Unmarshal(r.Payload, &event); err != nil {
		return event, fmt.Errorf("decode %q, event %d of %s, as %T: %w", r.EventType, r.Number, r.Aggregate, event, err)
	}
	return event, nil
}

// NoPosition returns the error of a projection for a message without a position. It says why the
// message has none.
func NoPosition(msg *message.Message) error {
	if part := msg.Metadata.Get(subscriber.PartKey); part != "" {
		return fmt.Errorf("message %s is part %s of an event that the Definitions of the subscriber split: leave these out, "+
			"and pass them to the projection, which handles the event as a whole: %w", msg.UUID, part, subscriber.ErrNoPosition)
	}
	if msg.Metadata.Get(subscriber.DeferredKey) != "" {
		return fmt.Errorf("message %s is of a deferred event, and later events were handled before it: "+
			"use another failure policy than subscriber.Defer: %w", msg.UUID, subscriber.ErrNoPosition)
	}
	return fmt.Errorf("message %s does not come from a subscriber of Millrace, or has lost its context: "+
		"pass the subscriber's own message to the handler, or use dedup.Positions for forwarded messages: %w", msg.UUID, subscriber.ErrNoPosition)
}
