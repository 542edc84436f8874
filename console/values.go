package console

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// The views of several pages have these parts. Their JSON is described in docs/console.md.

type aggregateRef struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func refOf(id aggregate.ID) aggregateRef { return aggregateRef{id.Type, id.Value} }

// eventRef is an event without what is in it.
type eventRef struct {
	aggregateRef
	Number    uint64    `json:"number"`
	EventType string    `json:"event_type"`
	At        time.Time `json:"at"`
}

func eventRefOf(r *journal.Record) eventRef {
	return eventRef{refOf(r.Aggregate), r.Number, r.EventType, r.OccurredAt}
}

// optionalTime is nil for the zero time, so that JSON leaves it out.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
