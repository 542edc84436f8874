package aggregate

import (
	"reflect"
	"slices"
)

// Description lists the Go types and the upcasters of a definition. Package catalogue documents
// them.
type Description struct {
	State reflect.Type // the type of the state
	// Events are the event types, in the order of [Define].
	Events []EventDescription
	// Upcasters are the upcasters, in the order in which they were added.
	Upcasters []UpcasterDescription
}

// EventDescription describes an event type of a definition.
type EventDescription struct {
	Type   string       // the name under which events are stored
	GoType reflect.Type // as [Define] was passed it: a value or a pointer
}

// UpcasterDescription describes an [Upcaster].
type UpcasterDescription struct {
	From string // the stored event type that it reads
	// To lists the event types that it is known to return. It is empty for [Drop]. Open reports
	// that it may return others, and Splits that it may return several events.
	To     []string
	Open   bool
	Splits bool
	// GoType is the type that stored payloads are decoded as. It is nil if the upcaster does not
	// decode them: [Rename], [Drop] and [UpcastRaw].
	GoType reflect.Type
	// Returns is the Go type of the events that it returns. It is nil if that is not one type.
	Returns reflect.Type
	Codec   Codec // decodes the payloads
}

// Describe returns the Go types and the upcasters of the definition.
func (d Definition[S]) Describe() Description {
	of := Description{State: reflect.TypeFor[S]()}
	if d.registry == nil {
		return of
	}
	for _, name := range d.registry.names {
		of.Events = append(of.Events, EventDescription{Type: name, GoType: d.registry.events[name].form})
	}
	if d.evolution == nil {
		return of
	}
	for _, name := range d.evolution.names {
		u := d.evolution.byName[name]
		of.Upcasters = append(of.Upcasters, UpcasterDescription{
			From: name, To: slices.Clone(u.to), Open: u.open, Splits: u.many, GoType: u.old, Returns: u.new, Codec: u.codecOr(d.Codec()),
		})
	}
	return of
}
