package projection

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/reaction"
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
// The record has the aggregate, the sequence number, the time and the metadata. No
// writes: the event is passed over. An error: the message is nacked and comes
// again; only its aggregate waits.
func On[E interface{ EventType() string }](react func(ctx context.Context, event E, record *journal.Record) ([]Write, error)) Reaction {
	if react == nil {
		return Reaction{} // which New refuses
	}
	return Reaction{
		eventType: reaction.EventType[E](),
		react: func(ctx context.Context, codec aggregate.Codec, r *journal.Record) ([]Write, error) {
			event, err := reaction.Decode[E](codec, r)
			if err != nil {
				return nil, err
			}
			return react(ctx, event, r)
		},
	}
}
