package aggregate

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels for errors.Is. The typed errors of this package say more; get them with errors.As.
var (
	// ErrInvalidID is the sentinel of [*InvalidIDError].
	ErrInvalidID = errors.New("invalid aggregate id")
	// ErrInvalidDefinition is the sentinel of [*DefinitionError].
	ErrInvalidDefinition = errors.New("invalid aggregate definition")
	// ErrUnknownEvent is the sentinel of [*UnknownEventError].
	ErrUnknownEvent = errors.New("unknown event type")
	// ErrMalformedEvent is the sentinel of [*MalformedEventError].
	ErrMalformedEvent = errors.New("malformed event")
	// ErrUnencodableEvent is the sentinel of [*UnencodableEventError].
	ErrUnencodableEvent = errors.New("unencodable event")
	// ErrUpcast is the sentinel of [*UpcastError].
	ErrUpcast = errors.New("upcast failed")
)

// InvalidIDError says why an id cannot name an aggregate, and what to do about it.
type InvalidIDError struct {
	ID     ID
	Reason string
}

func (e *InvalidIDError) Error() string {
	return fmt.Sprintf("%v (type %s, value %s): %s", ErrInvalidID, quote(e.ID.Type), quote(e.ID.Value), e.Reason)
}

// Is makes errors.Is(err, ErrInvalidID) true.
func (e *InvalidIDError) Is(target error) bool { return target == ErrInvalidID }

// DefinitionError lists everything that is wrong with a definition, each with its remedy.
type DefinitionError struct {
	AggregateType string
	Problems      []string
}

func (e *DefinitionError) Error() string {
	return fmt.Sprintf("%v %s: %s", ErrInvalidDefinition, quote(e.AggregateType), strings.Join(e.Problems, "; "))
}

// Is makes errors.Is(err, ErrInvalidDefinition) true.
func (e *DefinitionError) Is(target error) bool { return target == ErrInvalidDefinition }

// UnknownEventError says that a definition has no event type of that name.
type UnknownEventError struct {
	AggregateType string
	EventType     string
	Known         []string // the names that the definition has
}

func (e *UnknownEventError) Error() string {
	known := "none"
	if len(e.Known) > 0 {
		known = strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("%v %s of aggregate type %s (known: %s): add the event's Go type to aggregate.Define, or an upcaster "+
		"for its name, and keep it there for as long as such events are stored", ErrUnknownEvent, quote(e.EventType), quote(e.AggregateType), known)
}

// Is makes errors.Is(err, ErrUnknownEvent) true.
func (e *UnknownEventError) Is(target error) bool { return target == ErrUnknownEvent }

// MalformedEventError says that a stored payload is not what its event type promises. Err is the codec's error.
type MalformedEventError struct {
	AggregateType string
	EventType     string
	Err           error
}

func (e *MalformedEventError) Error() string {
	return fmt.Sprintf("%v %s of aggregate type %s: decode payload: %v", ErrMalformedEvent, quote(e.EventType), quote(e.AggregateType), e.Err)
}

func (e *MalformedEventError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrMalformedEvent) true.
func (e *MalformedEventError) Is(target error) bool { return target == ErrMalformedEvent }

// UnencodableEventError says that an event cannot be stored: it is nil, its Go type is not the one the
// definition has under its name, or the codec failed. Err tells which.
type UnencodableEventError struct {
	AggregateType string
	EventType     string // empty for a nil event
	Err           error
}

func (e *UnencodableEventError) Error() string {
	return fmt.Sprintf("%v %s of aggregate type %s: %v", ErrUnencodableEvent, quote(e.EventType), quote(e.AggregateType), e.Err)
}

func (e *UnencodableEventError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUnencodableEvent) true.
func (e *UnencodableEventError) Is(target error) bool { return target == ErrUnencodableEvent }

// UpcastError says that a stored event could not be turned into the events that stand for it today. Err is a
// [*MalformedEventError] if its payload cannot be decoded, the error that the upcaster's function returned, or
// that of [Definition.Decode] on what the upcasters gave.
type UpcastError struct {
	AggregateType string
	EventType     string // as stored
	At            string // the event type whose upcaster failed, if others had turned the stored event into it
	Err           error
}

func (e *UpcastError) Error() string {
	at := ""
	if e.At != e.EventType {
		at = " at " + quote(e.At)
	}
	remedy := ": correct the upcaster, which must take every stored event of its type"
	if errors.Is(e.Err, errNotUpcast) {
		remedy = ""
	}
	return fmt.Sprintf("%v for event type %s of aggregate type %s%s: %v%s",
		ErrUpcast, quote(e.EventType), quote(e.AggregateType), at, e.Err, remedy)
}

func (e *UpcastError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUpcast) true.
func (e *UpcastError) Is(target error) bool { return target == ErrUpcast }

// errNotUpcast is about the caller, who has the wrong method.
var errNotUpcast = errors.New("Decode was asked: use Replay, or Upcast and then Decode for each event that it gives")

// quote keeps an error readable whatever it is about: control characters are escaped and a text of a
// megabyte is cut.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
}
