package projection

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Reaction is what a projection does on one type of event. See [On].
type Reaction struct {
	eventType string
	react     func(context.Context, aggregate.Codec, *journal.Record) ([]Write, error)
}

// On reacts to events of the type E, which is known by its EventType. E is the event
// as the aggregate defines it, or a type of the reader's own with the fields it needs.
// The zero value of E must tell the type, so E is not a pointer.
//
// The record tells the aggregate, the sequence number, the time and the metadata. No
// writes: the event is passed over. An error: the message is nacked and comes
// again; only its aggregate waits.
func On[E interface{ EventType() string }](react func(ctx context.Context, event E, record *journal.Record) ([]Write, error)) Reaction {
	var zero E
	if any(zero) == nil {
		return Reaction{} // an interface type: New refuses it
	}
	return Reaction{
		eventType: eventType(zero),
		react: func(ctx context.Context, codec aggregate.Codec, r *journal.Record) ([]Write, error) {
			var event E
			if err := codec.Unmarshal(r.Payload, &event); err != nil {
				return nil, fmt.Errorf("decode %q, event %d of %s, as %T: %w", r.EventType, r.Number, r.Aggregate, event, err)
			}
			return react(ctx, event, r)
		},
	}
}

// eventType asks the zero value; a nil pointer may not answer.
func eventType(zero interface{ EventType() string }) (name string) {
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	return zero.EventType()
}
