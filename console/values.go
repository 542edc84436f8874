package console

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// These types are parts of the views of several pages. docs/console.md describes their JSON.

// aggregateRef names an aggregate.
type aggregateRef struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func refOf(id aggregate.ID) aggregateRef { return aggregateRef{id.Type, id.Value} }

// eventRef names an event, without its payload and metadata.
type eventRef struct {
	aggregateRef
	Number    uint64    `json:"number"`
	EventType string    `json:"event_type"`
	At        time.Time `json:"at"`
}

func eventRefOf(r *journal.Record) eventRef {
	return eventRef{refOf(r.Aggregate), r.Number, r.EventType, r.OccurredAt}
}

// optionalTime returns nil for the zero time, which JSON shows as null or leaves out.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
