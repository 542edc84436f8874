// Package reaction is what typed reactions to events have in common, wherever their effects go.
package reaction

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Event knows the type that it is stored under.
type Event interface{ EventType() string }

// EventType asks the zero value of E. It returns "" for types whose zero value does not answer:
// interfaces and most pointers.
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

// Decode returns the event of a record.
func Decode[E Event](codec aggregate.Codec, r *journal.Record) (event E, err error) {
	if err := codec.Unmarshal(r.Payload, &event); err != nil {
		return event, fmt.Errorf("decode %q, event %d of %s, as %T: %w", r.EventType, r.Number, r.Aggregate, event, err)
	}
	return event, nil
}
