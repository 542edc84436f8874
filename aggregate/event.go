package aggregate

// Event is something that has happened to an aggregate with state S.
//
// An event is a plain Go value. Its methods may have value or pointer receivers. Decisions must
// return events in the form that [Define] was passed, value or pointer, and [Definition.Decode]
// returns that form.
type Event[S any] interface {
	// EventType returns the name under which the event is stored, such as "account.deposited.v1".
	// It belongs to the Go type and must not depend on the fields of the event. Never change it
	// once events are stored.
	EventType() string

	// Apply changes the state to the state after the event. It returns no error, because an event
	// that has happened cannot be refused. It must depend on the state and the event alone.
	Apply(state *S)
}

// Events is a list of events of one aggregate, in the order in which they happen. A package that
// defines one aggregate can declare an alias, type Events = aggregate.Events[Account], and return
// Events{Withdrawn{30}}, nil.
type Events[S any] []Event[S]

// Decision returns the events that follow from a command on a state. It has no other effect.
//
// A decision that returns neither events nor an error accepts the command and changes nothing. A
// decision that returns an error refuses the command, and its events are ignored. A decision may
// run more than once for one command. It must not change the maps, slices and pointers in the
// state; see the package documentation.
type Decision[S any] func(state S) (Events[S], error)

// EncodedEvent is an event as it is stored: its name and its bytes from the codec.
type EncodedEvent struct {
	Type    string // the name of the event type
	Payload []byte // the encoded event
}
