package console

import (
	"context"
	"encoding/json"
	"strings"
)

// schemaView is the page of an event type in the catalogue.
type schemaView struct {
	Type      string `json:"type"` // of the aggregate
	EventType string `json:"event_type"`
	// Upcast reports that an upcaster reads the event type. UpcastTo has the event types that it
	// returns, if they are known.
	Upcast   bool            `json:"upcast"`
	UpcastTo []string        `json:"upcast_to,omitempty"`
	Schema   json.RawMessage `json:"schema"`
}

func (v schemaView) title() string { return v.EventType }

// Link returns the page of an event type that an upcaster returns.
func (v schemaView) Link(eventType string) string {
	return link("schema", "type", v.Type, "event_type", eventType)
}

func (r *reading) schema(context.Context) (any, error) {
	aggregateType, err := r.need("type")
	if err != nil {
		return nil, err
	}
	eventType, err := r.need("event_type")
	if err != nil {
		return nil, err
	}
	if r.config.Catalogue == nil {
		return nil, &missingError{"The console has no catalogue: set Config.Catalogue."}
	}
	e, ok := r.config.Catalogue.Event(aggregateType, eventType)
	if !ok {
		return nil, &missingError{"The catalogue lacks the event type " + text(eventType) + " of aggregate type " + text(aggregateType) + "."}
	}
	return schemaView{e.AggregateType, e.EventType, e.Upcast, e.UpcastTo, e.Schema}, nil
}

// schemaPath returns the path of the page of an event type. It is empty if the catalogue lacks it.
func (c *Console) schemaPath(aggregateType, eventType string) string {
	if c.config.Catalogue == nil {
		return ""
	}
	if _, ok := c.config.Catalogue.Event(aggregateType, eventType); !ok {
		return ""
	}
	return strings.TrimPrefix(link("schema", "type", aggregateType, "event_type", eventType), "./")
}
