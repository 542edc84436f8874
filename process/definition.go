package process

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/reaction"
)

// Definition describes a process manager: the aggregate that holds the state of a process, and the
// reactions to events and timeouts. Make one with [Define]. It needs no database, so package
// processtest can test it in memory.
type Definition[S any] struct {
	aggregate aggregate.Definition[S]
	reactions map[string]Reaction[S] // by event type
	timeouts  map[string]Reaction[S] // by name
	ended     func(S) bool           // nil without EndsWhen
	problems  []string
}

// Define returns the definition of a process manager from the definition of its aggregate and its
// reactions. It never panics, so a package variable can hold its result; [Definition.Validate]
// reports what is wrong.
func Define[S any](process aggregate.Definition[S], reactions ...Reaction[S]) Definition[S] {
	d := Definition[S]{
		aggregate: process,
		reactions: map[string]Reaction[S]{}, timeouts: map[string]Reaction[S]{},
	}
	starts := false
	for i, r := range reactions {
		of, kind, name := d.reactions, "event type", r.eventType
		if r.timeout != "" {
			of, kind, name = d.timeouts, "timeout", r.timeout
		}
		_, taken := of[name]
		switch {
		case r.react == nil || name == "":
			d.problem("reaction %d is of no event type and no timeout: make it with On, for an event struct whose zero value returns its EventType, or with OnTimeout and a name", i+1)
		case taken:
			d.problem("there are two reactions to the %s %q: make one of them", kind, name)
		case r.starts && kind == "timeout":
			d.problem("the timeout %q cannot start a process: it belongs to one", name)
		default:
			of[name], starts = r, starts || r.starts
		}
	}
	if !starts {
		d.problem("no reaction starts a process: mark one with Starts")
	}
	return d
}

// EndsWhen returns a copy of the definition with a function that reports whether a process in a
// state has ended. Inputs of a process that has ended are ignored, and its timeouts do not fire any
// more. A reaction ends its process by an event after which ended returns true. Ended must be pure.
//
// With EndsWhen, processes are listed until they end ([Backlog.OpenProcesses]). This costs
// two write units for the step that begins a process and two or more for the step that ends it.
func (d Definition[S]) EndsWhen(ended func(S) bool) Definition[S] {
	if ended == nil {
		d.problem("the function passed to EndsWhen is nil")
		return d
	}
	d.ended = ended
	return d
}

func (d *Definition[S]) problem(format string, args ...any) {
	d.problems = append(d.problems[:len(d.problems):len(d.problems)], fmt.Sprintf(format, args...))
}

// Validate returns a [*DefinitionError] that lists everything that is wrong, or the error of the
// aggregate's definition.
func (d Definition[S]) Validate() error {
	if err := d.aggregate.Validate(); err != nil {
		return err
	}
	if len(d.problems) > 0 {
		return &DefinitionError{Process: d.Type(), Problems: d.problems}
	}
	return nil
}

// Type returns the aggregate type of the processes, which is the topic of their events.
func (d Definition[S]) Type() string { return d.aggregate.Type() }

// Aggregate returns the definition of the aggregate that holds the state of a process.
func (d Definition[S]) Aggregate() aggregate.Definition[S] { return d.aggregate }

// EventTypes returns the event types that have a reaction, in alphabetical order.
func (d Definition[S]) EventTypes() []string { return slices.Sorted(maps.Keys(d.reactions)) }

// Ended reports whether a process in a state has ended; see [Definition.EndsWhen].
func (d Definition[S]) Ended(state S) bool { return d.ended != nil && d.ended(state) }

// key returns the id of the process to which an input belongs. Ok is false if there is none.
func (d Definition[S]) key(in Input) (key string, ok bool, err error) {
	if in.Timeout != "" {
		return in.Process, true, nil
	}
	r, ok := d.reactions[in.Type]
	if !ok {
		return "", false, nil
	}
	event, err := r.decode(in)
	if err != nil {
		return "", false, err
	}
	key = r.key(event, in)
	return key, key != "", nil
}

// react returns the step of a process for an input. It depends on the parameters only. Exists says
// whether the process has events. The Process of the input is the result of key. An [ErrIgnored]
// reports that the process does nothing, and why.
func (d Definition[S]) react(state S, exists bool, in Input) (Step[S], error) {
	r, ok := d.reactions[in.Type]
	if in.Timeout != "" {
		if r, in.TimeoutKey, ok = d.timeout(in.Timeout); !ok {
			return Step[S]{}, &UnknownTimeoutError{Process: d.Type(), Timeout: in.Timeout}
		}
	}
	switch {
	case !ok:
		return Step[S]{}, errNoReaction
	case !exists && !r.starts:
		return Step[S]{}, errNotStarted
	case exists && d.Ended(state):
		return Step[S]{}, errEnded
	}
	event, err := r.decode(in)
	if err != nil {
		return Step[S]{}, err
	}
	step, err := r.react(state, event, in)
	if err != nil {
		return Step[S]{}, err
	}
	if len(step.events)+len(step.commands)+len(step.timeouts)+len(step.cancelled) == 0 {
		return step, errNothingToDo
	}
	return step, d.check(step)
}

// check returns the faults of a step that can be found before it is stored.
func (d Definition[S]) check(step Step[S]) error {
	if len(step.events) == 0 {
		return ErrUnrecorded
	}
	for i, command := range step.commands {
		if command == nil {
			return fmt.Errorf("%w: command %d is nil", ErrInvalidStep, i+1)
		}
	}
	seen := map[string]bool{}
	once := func(name string) error {
		if err := d.checkTimeout(name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%w: %q is set or cancelled twice in one step", ErrInvalidStep, name)
		}
		seen[name] = true
		return nil
	}
	for _, t := range step.timeouts {
		if err := once(t.Name); err != nil {
			return err
		}
		if (t.After == 0) == t.At.IsZero() || t.After < 0 {
			return fmt.Errorf("%w: timeout %q needs a duration of more than 0, or a time", ErrInvalidStep, t.Name)
		}
	}
	for _, name := range step.cancelled {
		if err := once(name); err != nil {
			return err
		}
	}
	return nil
}

// Input is an event or a timeout to which a process reacts.
type Input struct {
	// ID is the id of the event or of the timeout. It is the same whenever the input is delivered
	// again. For an event id of more than 480 bytes, it is a UUID that is derived from it.
	ID     string
	Type   string       // type of the event
	Source aggregate.ID // aggregate of the event, empty if unknown
	// Sequence number of the event, 0 if unknown.
	Number uint64
	// When the event occurred, zero if unknown; when the timeout was due.
	OccurredAt time.Time
	// Metadata of the event, or of the step that set the timeout.
	Metadata aggregate.Metadata
	Timeout  string // name of the timeout; empty for an event
	// TimeoutKey is the part of Timeout after the name of its [OnTimeout], if that ends in a slash.
	TimeoutKey string

	// Process is the id of the process that the input belongs to. It is empty in the function of
	// [On] that returns that id.
	Process string

	payload []byte
	decoded any // instead of payload, in tests
	codec   aggregate.Codec
}

// Reaction handles one event type or timeout in a process manager. [On] and [OnTimeout] make one.
type Reaction[S any] struct {
	eventType, timeout string
	starts             bool
	decode             func(Input) (any, error)
	key                func(any, Input) string
	react              func(S, any, Input) (Step[S], error)
}

// On returns a [Reaction] to events of the type E. Key returns the id of the process to which an
// event belongs, or "" if it belongs to none. React receives the state of that process, and its id
// as in.Process. Both must be pure, as a decision must be: they may run several times for one
// event. If react returns an error, the message is nacked and delivered again.
//
// E is the event as its aggregate defines it, or a type of your own with the fields that the
// reaction needs. The zero value of E must return its EventType, so E is not a pointer.
func On[S any, E interface{ EventType() string }](key func(event E, in Input) string, react func(state S, event E, in Input) (Step[S], error)) Reaction[S] {
	if key == nil || react == nil {
		return Reaction[S]{}
	}
	return Reaction[S]{
		eventType: reaction.EventType[E](),
		decode:    decode[E],
		key:       func(event any, in Input) string { return key(event.(E), in) },
		react:     func(state S, event any, in Input) (Step[S], error) { return react(state, event.(E), in) },
	}
}

func decode[E any](in Input) (any, error) {
	if event, ok := in.decoded.(E); ok {
		return event, nil
	}
	if in.decoded != nil {
		return nil, fmt.Errorf("the event is a %T, and the reaction to %q takes a %T", in.decoded, in.Type, *new(E))
	}
	var event E
	if err := in.codec.Unmarshal(in.payload, &event); err != nil {
		return nil, fmt.Errorf("decode %q, event %d of %s, as %T: %w", in.Type, in.Number, in.Source, event, err)
	}
	return event, nil
}

// Starts returns a copy of the reaction whose events may be the first of a process. If an event of
// another reaction arrives for a process without events, it is ignored.
func (r Reaction[S]) Starts() Reaction[S] {
	r.starts = true
	return r
}

// OnTimeout returns a [Reaction] to the timeout with a name. React is as in [On]. After react has
// returned a step, empty or not, the timeout is no longer set, unless the step sets it again. After
// an error it fires again.
//
// If the name ends in a slash, react is for all timeouts whose names are that name and a key, which
// it receives as in.TimeoutKey. So a process can have a timeout for each of several things:
//
//	process.OnTimeout("retry/", func(s Saga, in process.Input) (process.Step[Saga], error) {
//		return process.Record(Retried{in.TimeoutKey}).
//			Send(Charge{Invoice: in.TimeoutKey}).
//			SetTimeout("retry/"+in.TimeoutKey, time.Hour), nil
//	})
//
// A reaction to exactly the name of the timeout comes first, then the one with the longest name. A
// key is at least one byte of text without control characters, and with the name at most 512 bytes.
func OnTimeout[S any](name string, react func(state S, in Input) (Step[S], error)) Reaction[S] {
	if react == nil {
		return Reaction[S]{}
	}
	return Reaction[S]{
		timeout: name,
		decode:  func(Input) (any, error) { return nil, nil },
		react:   func(state S, _ any, in Input) (Step[S], error) { return react(state, in) },
	}
}

// These errors report why react does nothing. All of them wrap [ErrIgnored].
var (
	errNoReaction   = fmt.Errorf("%w: there is no reaction to it", ErrIgnored)
	errNotStarted   = fmt.Errorf("%w: its process has not begun, and its reaction is not marked with Starts", ErrIgnored)
	errKeyDestroyed = fmt.Errorf("%w: the encryption key of its process was destroyed", ErrIgnored)
	errDeleted      = fmt.Errorf("%w: its process was deleted", ErrIgnored)
	errNothingToDo  = fmt.Errorf("%w: its reaction returned an empty step", ErrIgnored)
	errNotSet       = fmt.Errorf("%w: the timeout was cancelled or moved meanwhile, or has fired", ErrIgnored)
	errEnded        = fmt.Errorf("%w: its process has ended", ErrIgnored)
)

func isIgnored(err error) bool { return errors.Is(err, ErrIgnored) }
