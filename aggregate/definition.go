package aggregate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/millrace-dev/millrace/internal/printable"
)

// Definition describes an aggregate type: its name, its events and their codec. Make one with
// [Define]. A definition never changes, can be copied and is safe for concurrent use. The zero
// value is not valid; Validate reports that.
type Definition[S any] struct {
	registry  *registry
	codec     Codec
	evolution *evolution
}

// registry is the part of a definition that does not depend on S. It is not changed after Define.
type registry struct {
	aggregateType string
	names         []string // in the order of Define
	events        map[string]eventForm
	problems      []string
}

// eventForm describes the Go type of the events of one name.
type eventForm struct {
	form      reflect.Type // as given to Define: T or *T
	target    reflect.Type // T
	isPointer bool
}

// Define makes the definition of an aggregate type from its name and one example of each event
// type:
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})
//
// Only the Go type of an example matters, including whether it is a value or a pointer: with the
// example &Deposited{}, decisions return and Decode returns *Deposited. Define never panics, so a
// package variable can hold its result; [Definition.Validate] reports what is wrong.
func Define[S any](aggregateType string, events ...Event[S]) Definition[S] {
	r := &registry{aggregateType: aggregateType, events: make(map[string]eventForm, len(events))}
	r.checkType()
	r.checkState(reflect.TypeFor[S]())
	if len(events) == 0 {
		r.problem("it has no events: pass aggregate.Define an example of each event type")
	}
	for i, event := range events {
		addEvent(r, i+1, event)
	}
	return Definition[S]{registry: r, codec: jsonCodec{}}
}

func (r *registry) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *registry) checkType() {
	if fault := nameFault(r.aggregateType); fault != "" {
		r.problem("the aggregate type %s", fault)
	}
	if n, most := len(r.aggregateType), MaxIDBytes-len("-")-1; n > most {
		r.problem("the aggregate type has %d bytes and leaves no room for an id in a key: use at most %d, or better 30", n, most)
	}
}

func (r *registry) checkState(state reflect.Type) {
	switch state.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan:
		r.problem("the state type %s is nil before the first event: use a type whose zero value is that state, such as a struct", state)
	}
}

func addEvent[S any](r *registry, position int, example Event[S]) {
	form := reflect.TypeOf(example)
	if form == nil || isNilPointer(example) {
		r.problem("event %d is nil: pass an example such as Deposited{} or &Deposited{}", position)
		return
	}
	target, isPointer := form, form.Kind() == reflect.Pointer
	if isPointer {
		target = form.Elem()
	}

	name, err := eventName(example)
	if err != nil {
		r.problem("event %d (%s): %v", position, form, err)
		return
	}
	if fault := nameFault(name); fault != "" {
		r.problem("event %d (%s): its EventType %s", position, form, fault)
		return
	}
	if other, taken := r.events[name]; taken {
		if other.target == target {
			r.problem("event type %s (%s) is given twice, before as %s: pass it once, as the value or the pointer that decisions return",
				printable.Quote(name), form, other.form)
			return
		}
		r.problem("event type %s names both %s and %s: use a different name for each Go type", printable.Quote(name), other.form, form)
		return
	}

	zero := reflect.New(target)
	if !isPointer {
		zero = zero.Elem()
	}
	if again, err := eventName(zero.Interface().(Event[S])); err != nil || again != name {
		r.problem("event %d (%s): EventType returns %s for the example and another name for an event without content: "+
			"return a constant, and use one Go type for each event type", position, form, printable.Quote(name))
		return
	}
	r.names = append(r.names, name)
	r.events[name] = eventForm{form: form, target: target, isPointer: isPointer}
}

// eventName returns the EventType of an example. It recovers from a panic, because a panic during
// package initialisation would be hard to locate.
func eventName(event interface{ EventType() string }) (name string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("EventType panics (%v): return a constant", cause)
		}
	}()
	return event.EventType(), nil
}

func isNilPointer(event any) bool {
	v := reflect.ValueOf(event)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Validate returns a [*DefinitionError] that lists everything that is wrong:
//
//   - an aggregate type or an event type name that is empty or cannot be used,
//   - no events, a nil event, or two events of one name,
//   - an event type name that depends on the fields of the event,
//   - a state type whose zero value is nil,
//   - a nil codec,
//   - each state or event type that the [TypeChecker] of the codec refuses; [JSON] refuses content
//     that encoding/json drops or cannot hold, such as unexported fields,
//   - the faults of upcasters; see [Definition.WithUpcasters].
//
// A repository validates the definition that it is passed.
func (d Definition[S]) Validate() error {
	if d.registry == nil {
		return &DefinitionError{Problems: []string{"it is the zero Definition: make one with aggregate.Define"}}
	}
	problems := slices.Clone(d.registry.problems)
	if d.codec == nil {
		problems = append(problems, "the codec is nil: pass one, or omit WithCodec for JSON")
	}
	if checker, ok := d.codec.(TypeChecker); ok {
		state := reflect.TypeFor[S]()
		if err := checker.CheckType(reflect.PointerTo(state)); err != nil {
			problems = append(problems, fmt.Sprintf("state %s: %v", state, err))
		}
		for _, name := range d.registry.names {
			form := d.registry.events[name].form
			if err := checker.CheckType(form); err != nil {
				problems = append(problems, fmt.Sprintf("event type %s (%s): %v", printable.Quote(name), form, err))
			}
		}
	}
	problems = append(problems, d.evolution.faults(d.registry, d.codec)...)
	if len(problems) == 0 {
		return nil
	}
	return &DefinitionError{AggregateType: d.registry.aggregateType, Problems: problems}
}

// Type returns the name of the aggregate type.
func (d Definition[S]) Type() string {
	if d.registry == nil {
		return ""
	}
	return d.registry.aggregateType
}

// EventTypes returns the names of the event types, in the order in which they were defined.
func (d Definition[S]) EventTypes() []string {
	if d.registry == nil {
		return nil
	}
	return slices.Clone(d.registry.names)
}

// ID returns the id of an aggregate of this type, or an [*InvalidIDError].
func (d Definition[S]) ID(value string) (ID, error) {
	return NewID(d.Type(), value)
}

// WithCodec returns a copy of the definition with another codec. Events that are stored already can
// only be read by the codec that wrote them.
func (d Definition[S]) WithCodec(codec Codec) Definition[S] {
	d.codec = codec
	return d
}

// Codec returns the codec of the definition: [JSON], unless WithCodec has set another.
func (d Definition[S]) Codec() Codec {
	if d.codec == nil {
		return jsonCodec{}
	}
	return d.codec
}

// Encode encodes an event as its name and bytes. It returns an [*UnknownEventError] if the
// definition lacks the name of the event. It returns an [*UnencodableEventError] in these cases:
//
//   - The event is nil.
//   - The Go type of the event is not the defined one. A pointer does not count as its value.
//   - An upcaster reads events of that name, so a load would return another event.
//   - The codec fails.
func (d Definition[S]) Encode(event Event[S]) (EncodedEvent, error) {
	if event == nil || isNilPointer(event) {
		return EncodedEvent{}, &UnencodableEventError{AggregateType: d.Type(), Err: errors.New("the event is nil")}
	}
	name := event.EventType()
	if d.evolution.reads(name) {
		return EncodedEvent{}, &UnencodableEventError{AggregateType: d.Type(), EventType: name, Err: errors.New(
			"an upcaster turns stored events of this name into others: return the event type that stands for them today")}
	}
	form, ok := d.form(name)
	if !ok {
		return EncodedEvent{}, d.unknown(name)
	}
	// If Encode accepted both forms, a type switch would see one form from a decision and the other
	// form from the store.
	if got := reflect.TypeOf(event); got != form.form {
		return EncodedEvent{}, &UnencodableEventError{AggregateType: d.Type(), EventType: name, Err: fmt.Errorf(
			"the event is a %s and the definition has %s: return the form that aggregate.Define was passed", got, form.form)}
	}
	payload, err := d.Codec().Marshal(event)
	if err != nil {
		return EncodedEvent{}, &UnencodableEventError{AggregateType: d.Type(), EventType: name, Err: err}
	}
	return EncodedEvent{Type: name, Payload: payload}, nil
}

// Decode decodes a stored event as the value or pointer that Define was passed. It knows only the
// event types of the definition; [Definition.Replay] and [Definition.Upcast] run upcasters.
//
// Decode returns one of these errors:
//
//   - an [*UpcastError] if the definition lacks the name and an upcaster reads it,
//   - an [*UnknownEventError] if neither the definition nor an upcaster has the name,
//   - a [*MalformedEventError] with the error of the codec if the payload cannot be decoded.
//
// Decode neither keeps nor changes payload.
func (d Definition[S]) Decode(eventType string, payload []byte) (Event[S], error) {
	form, ok := d.form(eventType)
	if !ok && d.evolution.reads(eventType) {
		return nil, &UpcastError{AggregateType: d.Type(), EventType: eventType, At: eventType, Err: errNotUpcast}
	}
	if !ok {
		return nil, d.unknown(eventType)
	}
	decoded := reflect.New(form.target)
	if err := d.Codec().Unmarshal(payload, decoded.Interface()); err != nil {
		return nil, &MalformedEventError{AggregateType: d.Type(), EventType: eventType, Err: err}
	}
	if !form.isPointer {
		decoded = decoded.Elem()
	}
	return decoded.Interface().(Event[S]), nil
}

// Apply applies events to a state, in order. It does not recover from a panic in the Apply method
// of an event.
func (d Definition[S]) Apply(state *S, events ...Event[S]) {
	for _, event := range events {
		event.Apply(state)
	}
}

func (d Definition[S]) form(name string) (eventForm, bool) {
	if d.registry == nil {
		return eventForm{}, false
	}
	form, ok := d.registry.events[name]
	return form, ok
}

func (d Definition[S]) unknown(name string) error {
	return &UnknownEventError{AggregateType: d.Type(), EventType: name, Known: d.EventTypes()}
}
