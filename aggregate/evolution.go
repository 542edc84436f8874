package aggregate

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/internal/printable"
)

var errCircle = errors.New("upcasters go in a circle")

// evolution holds the upcasters of a definition. It does not change once a definition has it. Nil
// means none.
type evolution struct {
	names    []string // in the order in which they were given
	byName   map[string]Upcaster
	problems []string
}

// WithUpcasters returns a copy of the definition with these upcasters in addition. Their order does
// not matter: an event that one upcaster returns is passed to the upcaster for its name, if there
// is one, and so on. See the package documentation for when to change a stored event type in this
// way.
//
// [Definition.Validate] reports these faults:
//
//   - two upcasters for one name,
//   - an upcaster for a name that the definition still has,
//   - an upcaster that returns a name that neither the definition nor an upcaster knows,
//   - upcasters that go in a circle,
//   - a missing function.
func (d Definition[S]) WithUpcasters(upcasters ...Upcaster) Definition[S] {
	e := &evolution{byName: make(map[string]Upcaster, len(upcasters))}
	if before := d.evolution; before != nil {
		e.names, e.problems = slices.Clone(before.names), slices.Clone(before.problems)
		maps.Copy(e.byName, before.byName)
	}
	for i, u := range upcasters {
		e.add(i+1, u)
	}
	d.evolution = e
	return d
}

func (e *evolution) add(position int, u Upcaster) {
	if u.convert == nil && u.fault == "" {
		e.problems = append(e.problems, fmt.Sprintf("upcaster %d is the zero Upcaster: make one with aggregate.Upcast", position))
		return
	}
	if fault := nameFault(u.from); fault != "" {
		e.problems = append(e.problems, fmt.Sprintf("upcaster %d: the event type that it reads %s", position, fault))
		return
	}
	if _, taken := e.byName[u.from]; taken {
		e.problems = append(e.problems, fmt.Sprintf("two upcasters read the event type %s: make one of them", printable.Quote(u.from)))
		return
	}
	if u.fault != "" {
		e.problems = append(e.problems, fmt.Sprintf("upcaster of %s: %s", printable.Quote(u.from), u.fault))
		u.convert = func(Codec, codecs, []byte) ([]EncodedEvent, error) { return nil, errors.New(u.fault) }
	}
	e.names = append(e.names, u.from)
	e.byName[u.from] = u
}

// reads reports whether an upcaster reads stored events of a name.
func (e *evolution) reads(name string) bool {
	if e == nil {
		return false
	}
	_, ok := e.byName[name]
	return ok
}

// splits reports whether an upcaster may return several events.
func (e *evolution) splits() bool {
	if e == nil {
		return false
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(e.byName)), func(u Upcaster) bool { return u.many })
}

// faults returns the faults of the upcasters, alone and together with the events of the definition.
func (e *evolution) faults(r *registry, codec Codec) []string {
	if e == nil {
		return nil
	}
	problems := slices.Clone(e.problems)
	for _, name := range e.names {
		u := e.byName[name]
		problem := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("upcaster of %s: ", printable.Quote(name))+fmt.Sprintf(format, args...))
		}
		if form, defined := r.events[name]; defined {
			problem("the definition still has that event type, as %s: remove the Go type from aggregate.Define "+
				"or change its name", form.form)
		}
		for _, to := range u.to {
			if _, defined := r.events[to]; !defined && !e.reads(to) {
				problem("it returns the event type %s, which neither the definition nor an upcaster knows: "+
					"add one of the two", printable.Quote(to))
			}
		}
		if checker, ok := u.codecOr(codec).(TypeChecker); ok && u.old != nil {
			old := u.old
			if old.Kind() != reflect.Pointer {
				// The codec only has to decode the type, and it decodes into a pointer.
				old = reflect.PointerTo(old)
			}
			if err := checker.CheckType(old); err != nil {
				problem("what it reads, %s: %v", u.old, err)
			}
		}
		if u.new == nil || r.events[u.to[0]].form == u.new {
			continue
		}
		if checker, ok := e.codecOf(u.to[0], codec).(TypeChecker); ok {
			if err := checker.CheckType(u.new); err != nil {
				problem("what it returns, %s: %v", u.new, err)
			}
		}
	}
	if circle := e.circle(); circle != nil {
		problems = append(problems, fmt.Sprintf("%v (%s): let the last return an event type of the definition", errCircle, path(circle)))
	}
	return problems
}

// codecOf returns the codec that decodes events of a type that an upcaster returns: that of the
// definition, unless an upcaster with a codec of its own reads them.
func (e *evolution) codecOf(eventType string, codec Codec) Codec {
	for range e.names { // renames can go in a circle
		u, upcast := e.byName[eventType]
		if !upcast || u.old != nil {
			return u.codecOr(codec)
		}
		if u.many || len(u.to) != 1 {
			break
		}
		eventType = u.to[0] // renamed
	}
	return codec
}

// circle finds upcasters that feed each other without end. It knows only the names that they
// declare.
func (e *evolution) circle() []string {
	done := map[string]bool{}
	var visit func(name string, before []string) []string
	visit = func(name string, before []string) []string {
		if at := slices.Index(before, name); at >= 0 {
			return append(before[at:], name)
		}
		if done[name] {
			return nil
		}
		before = append(before, name)
		for _, to := range e.byName[name].to {
			if found := visit(to, before); found != nil {
				return found
			}
		}
		done[name] = true
		return nil
	}
	for _, name := range e.names {
		if found := visit(name, nil); found != nil {
			return found
		}
	}
	return nil
}

func path(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = printable.Quote(name)
	}
	return strings.Join(quoted, " -> ")
}

// Upcasts reports whether there is an upcaster for stored events of a type.
func (d Definition[S]) Upcasts(eventType string) bool { return d.evolution.reads(eventType) }

// Splits reports whether an upcaster may turn a stored event into several events: one of [Split] or
// [UpcastRaw].
func (d Definition[S]) Splits() bool { return d.evolution.splits() }

// Upcast returns the current events for a stored event: the events that its upcasters return, or
// the stored event itself if no upcaster reads its type, whether or not the definition has that
// type. The result may share memory with the payload.
//
// Upcast depends on no state, so readers without a state, such as projections, can use it as a
// function: Accounts.Upcast. The error is an [*UpcastError].
func (d Definition[S]) Upcast(stored EncodedEvent) ([]EncodedEvent, error) {
	if !d.evolution.reads(stored.Type) {
		return []EncodedEvent{stored}, nil
	}
	run := upcasting{evolution: d.evolution, codec: d.Codec(), aggregateType: d.Type()}
	if err := run.convert(stored); err != nil {
		var failed *UpcastError
		if errors.As(err, &failed) {
			failed.EventType = stored.Type
		}
		return nil, err
	}
	return run.events, nil
}

// upcasting converts one stored event.
type upcasting struct {
	evolution     *evolution
	codec         Codec
	aggregateType string
	way           []string // the names that led to the current event
	events        []EncodedEvent
}

func (run *upcasting) convert(event EncodedEvent) error {
	u, ok := run.evolution.byName[event.Type]
	if !ok {
		run.events = append(run.events, event)
		return nil
	}
	way := run.way
	defer func() { run.way = way }()
	run.way = append(slices.Clip(way), event.Type)
	if slices.Contains(way, event.Type) {
		return run.fail(event.Type, fmt.Errorf("%w (%s): let the last return an event type of the definition", errCircle, path(run.way)))
	}
	codecOf := func(eventType string) Codec { return run.evolution.codecOf(eventType, run.codec) }
	events, err := u.convert(u.codecOr(run.codec), codecOf, event.Payload)
	if err != nil {
		return run.fail(event.Type, err)
	}
	for _, e := range events {
		if err := run.convert(e); err != nil {
			return err
		}
	}
	return nil
}

func (run *upcasting) fail(at string, err error) error {
	var malformed errMalformedOld
	if errors.As(err, &malformed) {
		err = &MalformedEventError{AggregateType: run.aggregateType, EventType: at, Err: malformed.error}
	}
	return &UpcastError{AggregateType: run.aggregateType, EventType: at, At: at, Err: err}
}

// Replay applies a stored event to a state, as every load does: the event itself, or all events
// that its upcasters return. An error leaves the state unchanged. The error is that of
// [Definition.Decode] if no upcaster reads the event. Otherwise it is an [*UpcastError], also if an
// upcaster returns an event that the definition cannot decode. Replay neither keeps nor changes
// payload.
func (d Definition[S]) Replay(state *S, eventType string, payload []byte) error {
	if !d.evolution.reads(eventType) {
		event, err := d.Decode(eventType, payload)
		if err != nil {
			return err
		}
		event.Apply(state)
		return nil
	}
	encoded, err := d.Upcast(EncodedEvent{Type: eventType, Payload: payload})
	if err != nil {
		return err
	}
	events := make(Events[S], len(encoded))
	for i, e := range encoded {
		if events[i], err = d.Decode(e.Type, e.Payload); err != nil {
			return &UpcastError{AggregateType: d.Type(), EventType: eventType, At: eventType, Err: err}
		}
	}
	d.Apply(state, events...)
	return nil
}
