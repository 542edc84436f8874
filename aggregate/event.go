package aggregate

// Event is something that has happened to an aggregate with state S.
//
// An event is a plain Go value; its methods may have value or pointer receivers. Which of the two
// the definition was given ([Define]) is the form that decisions must return and that
// [Definition.Decode] returns.
type Event[S any] interface {
	// EventType is the name under which the event is stored, such as "account.deposited.v1". It
	// belongs to the Go type and must not depend on the event's fields. Never change it once events
	// are stored.
	EventType() string

	// Apply changes the state to what it is after the event. It has no error, for what has happened
	// cannot be refused, and it must depend on nothing but the state and the event.
	Apply(state *S)
}

// Events are events of one aggregate, in the order in which they happen. A package that defines one
// aggregate can name its own with an alias, type Events = aggregate.Events[Account], and return
// Events{Withdrawn{30}}, nil.
type Events[S any] []Event[S]

// Decision turns a state into the events that follow from a command. It has no other effect.
//
// A decision that returns neither events nor an error accepts the command and changes nothing. A
// decision that returns an error refuses the command, and its events are ignored. A decision may
// run more than once for one command. It must not change the maps, slices and pointers in the
// state; see the package documentation.
type Decision[S any] func(state S) (Events[S], error)

// EncodedEvent is an event as it is stored: its name and the bytes that the codec made of it.
type EncodedEvent struct {
	Type    string
	Payload []byte
}
