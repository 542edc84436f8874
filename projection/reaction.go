package projection

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/journal"
)

// Reaction handles one type of event in a projection. [On] makes one.
type Reaction struct {
	eventType string
	react     func(context.Context, aggregate.Codec, *journal.Record) ([]Write, error)
}

// On returns a [Reaction] to events of the type E, which is identified by its EventType. E is the
// event as the aggregate defines it, or a type of your own with the fields that the reaction needs.
// The zero value of E must return its EventType, so E is not a pointer.
//
// The record holds the aggregate, the sequence number, the time and the metadata. If react returns
// no writes, the event is acked. If it returns an error, the message is nacked and is delivered
// again; only its aggregate waits.
func On[E interface{ EventType() string }](react func(ctx context.Context, event E, record *journal.Record) ([]Write, error)) Reaction {
	if react == nil {
		return Reaction{} // New refuses it
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
