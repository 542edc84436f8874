// Package history upcasts stored events to the current event types. Projections, process managers
// and subscribers use it.
package history

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// History upcasts stored events by the definitions of their aggregates.
type History struct {
	codec       aggregate.Codec
	definitions map[string]aggregate.AnyDefinition
}

// New returns a History for some definitions. codec decodes the events of all other aggregate
// types. The error says what is wrong with a definition.
func New(codec aggregate.Codec, definitions []aggregate.AnyDefinition) (History, error) {
	h := History{codec: codec, definitions: map[string]aggregate.AnyDefinition{}}
	for i, d := range definitions {
		if d == nil {
			return History{}, fmt.Errorf("definition %d is nil", i+1)
		}
		if err := d.Validate(); err != nil {
			return History{}, err
		}
		if h.definitions[d.Type()] != nil {
			return History{}, fmt.Errorf("two definitions of aggregate type %q: use one", d.Type())
		}
		h.definitions[d.Type()] = d
	}
	return h, nil
}

// Upcasts reports whether an upcaster turns stored events of a type into other events, or into
// none.
func (h History) Upcasts(aggregateType, eventType string) bool {
	d := h.definitions[aggregateType]
	return d != nil && d.Upcasts(eventType)
}

// Codec returns the codec for the events of an aggregate type.
func (h History) Codec(aggregateType string) aggregate.Codec {
	if d := h.definitions[aggregateType]; d != nil {
		return d.Codec()
	}
	return h.codec
}

// Upcast returns the current events that a stored event of an aggregate type stands for.
func (h History) Upcast(aggregateType string, stored aggregate.EncodedEvent) ([]aggregate.EncodedEvent, error) {
	d := h.definitions[aggregateType]
	if d == nil {
		return []aggregate.EncodedEvent{stored}, nil
	}
	return d.Upcast(stored)
}

// Today returns the current events that a record stands for. Each of them has the number, the id
// and all other fields of the stored record.
func (h History) Today(stored *journal.Record) ([]*journal.Record, error) {
	if !h.Upcasts(stored.Aggregate.Type, stored.EventType) {
		return []*journal.Record{stored}, nil
	}
	events, err := h.Upcast(stored.Aggregate.Type, aggregate.EncodedEvent{Type: stored.EventType, Payload: stored.Payload})
	if err != nil {
		return nil, fmt.Errorf("event %d of %s: %w", stored.Number, stored.Aggregate, err)
	}
	records := make([]*journal.Record, len(events))
	for i, e := range events {
		r := *stored
		r.EventType, r.Payload = e.Type, e.Payload
		records[i] = &r
	}
	return records, nil
}
