package aggregate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/internal/printable"
)

// InvalidIDError reports that an id cannot name an aggregate. Reason says why, and what to do about
// it.
type InvalidIDError struct {
	ID     ID     // the id that was refused
	Reason string // why, and what to do about it
}

func (e *InvalidIDError) Error() string {
	return fmt.Sprintf("invalid aggregate id (type %s, value %s): %s", printable.Quote(e.ID.Type), printable.Quote(e.ID.Value), e.Reason)
}

// DefinitionError reports everything that is wrong with a definition. Each problem says how to fix
// it.
type DefinitionError struct {
	AggregateType string   // the type that the definition names
	Problems      []string // one text for each problem
}

func (e *DefinitionError) Error() string {
	return fmt.Sprintf("invalid aggregate definition %s: %s", printable.Quote(e.AggregateType), strings.Join(e.Problems, "; "))
}

// UnknownEventError reports that a definition has no event type of that name.
type UnknownEventError struct {
	AggregateType string   // the type of the definition
	EventType     string   // the name that is unknown; empty for an event without a type
	Known         []string // the names that the definition has
}

func (e *UnknownEventError) Error() string {
	known := "none"
	if len(e.Known) > 0 {
		known = strings.Join(e.Known, ", ")
	}
	if e.EventType == "" {
		return fmt.Sprintf("event without a type of aggregate type %s (known: %s): journal.Config.EventType finds the type of events of other programs",
			printable.Quote(e.AggregateType), known)
	}
	return fmt.Sprintf("unknown event type %s of aggregate type %s (known: %s): add the event's Go type to aggregate.Define, or an upcaster "+
		"for its name, and keep it there for as long as such events are stored", printable.Quote(e.EventType), printable.Quote(e.AggregateType), known)
}

// MalformedEventError reports that a stored payload cannot be decoded as its event type. Err is the
// error of the codec.
type MalformedEventError struct {
	AggregateType string // the type of the definition
	EventType     string // the name under which the event is stored
	Err           error
}

func (e *MalformedEventError) Error() string {
	return fmt.Sprintf("malformed event %s of aggregate type %s: decode payload: %v", printable.Quote(e.EventType), printable.Quote(e.AggregateType), e.Err)
}

func (e *MalformedEventError) Unwrap() error { return e.Err }

// UnencodableEventError reports that an event cannot be stored: it is nil, its Go type is not the
// one that the definition has under its name, or the codec failed. Err says which.
type UnencodableEventError struct {
	AggregateType string // the type of the definition
	EventType     string // empty for a nil event
	Err           error
}

func (e *UnencodableEventError) Error() string {
	return fmt.Sprintf("unencodable event %s of aggregate type %s: %v", printable.Quote(e.EventType), printable.Quote(e.AggregateType), e.Err)
}

func (e *UnencodableEventError) Unwrap() error { return e.Err }

// UpcastError reports that a stored event could not be converted to current events. Err is a
// [*MalformedEventError] if its payload cannot be decoded, the error of the upcaster's function, or
// the error of [Definition.Decode] for an event that the upcaster returned.
type UpcastError struct {
	AggregateType string // the type of the definition
	EventType     string // as stored
	// At is the event type whose upcaster failed, if other upcasters had converted the stored event
	// to it.
	At  string
	Err error
}

func (e *UpcastError) Error() string {
	at := ""
	if e.At != e.EventType {
		at = " at " + printable.Quote(e.At)
	}
	remedy := ": correct the upcaster, which must take every stored event of its type"
	if errors.Is(e.Err, errNotUpcast) {
		remedy = ""
	}
	return fmt.Sprintf("upcast failed for event type %s of aggregate type %s%s: %v%s",
		printable.Quote(e.EventType), printable.Quote(e.AggregateType), at, e.Err, remedy)
}

func (e *UpcastError) Unwrap() error { return e.Err }

// errNotUpcast reports that the caller used Decode for an event that has an upcaster.
var errNotUpcast = errors.New("Decode was called: call Replay, or Upcast and then Decode for each event that it returns")
