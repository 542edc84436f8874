package processtest

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/internal/dryrun"
	"github.com/millrace-dev/millrace/internal/trial"
	"github.com/millrace-dev/millrace/process"
)

// Scenario tests one process. [Given] makes it. Its methods return it, so that they can be chained.
// The first failure ends the test by t.Fatalf; later calls do nothing.
//
// All inputs must belong to that one process. The first input with a key decides which process it
// is. An input with another key fails the test, because it would reach another process in
// production.
type Scenario[S any] struct {
	t          testing.TB
	definition process.Definition[S]
	reactions  reactions[S] // of definition
	history    trial.History[S]
	state      S // after all events so far
	marshaler  cqrs.CommandEventMarshaler
	now        time.Time            // the latest time of an input
	inputs     int                  // number of inputs so far
	input      string               // the latest input, for failures
	key        string               // id of the process, after its first input
	keyFrom    string               // the first input with that key
	endedBy    string               // the input that ended the process
	set        map[string]time.Time // when the timeouts are due that are set, by name
	// Timeouts that are no longer set, and why.
	gone   map[string]string
	step   process.Step[S]
	err    error // error of the latest input, also if it was ignored
	seen   bool  // whether the test has expected err
	failed bool
}

// reactions are the methods of a process.Definition that run its reactions.
type reactions[S any] interface {
	Key(in process.Input) (key string, ok bool, err error)
	React(state S, exists bool, in process.Input) (process.Step[S], error)
	Decoded(event interface{ EventType() string }, in process.Input) process.Input
	Stored(definition aggregate.AnyDefinition, event aggregate.EncodedEvent, in process.Input) ([]process.Input, error)
}

// Given starts a scenario of a process to which the events have happened. Without events, the
// process has not begun.
func Given[S any](t testing.TB, definition process.Definition[S], events ...aggregate.Event[S]) *Scenario[S] {
	t.Helper()
	s := &Scenario[S]{
		t: t, definition: definition, reactions: dryrun.Of(definition).(reactions[S]), history: trial.Of(definition.Aggregate()),
		set: map[string]time.Time{}, gone: map[string]string{},
	}
	if err := definition.Validate(); err != nil {
		s.fail("%v", err)
		return s
	}
	if !s.apply(events) {
		return s
	}
	t.Cleanup(func() {
		t.Helper()
		if s.err != nil && !s.seen && !s.failed {
			t.Errorf("%s", s.unhandled())
		}
	})
	return s
}

// Marshaler sets the marshaler of the commands. Use the one of [process.Config] if the manager has
// another than the default. Call it before the first When.
//
// Each command of a step is marshaled and unmarshaled. The test fails if the command changes. The
// default is cqrs.JSONMarshaler. Without a call of Marshaler, Protocol Buffers messages are not
// checked, since a manager that sends them has another marshaler.
func (s *Scenario[S]) Marshaler(m cqrs.CommandEventMarshaler) *Scenario[S] {
	s.t.Helper()
	if s.inputs > 0 && !s.failed {
		s.fail("Marshaler comes too late: put it before the first When")
	}
	s.marshaler = m
	return s
}

// When passes an event to the process. More sets the other fields of its input, such as Source.
// Pass it if reactions use these fields. A step is made at the time of its input, so OccurredAt
// also decides when timeouts are due.
func (s *Scenario[S]) When(event interface{ EventType() string }, more ...process.Input) *Scenario[S] {
	s.t.Helper()
	if event == nil {
		s.fail("the event is nil")
		return s
	}
	in := s.reactions.Decoded(event, first(more))
	s.event(shown(diff.Show(event), in.Source), in)
	return s
}

// WhenStored passes an event to the process in the form in which the journal stores it, for example
// an event that an older program has written. Definition is the definition of its aggregate, one of
// [process.Config].Definitions. Its upcasters convert the event to a current event:
//
//	processtest.Given(t, sagas).
//		WhenStored(orders, "order.placed.v1", `{"Cents":500}`).
//		Then(Begun{Total: 5})
//
// If they return several events, the process receives them one after the other. Then and the
// similar methods are about the last one.
func (s *Scenario[S]) WhenStored(definition aggregate.AnyDefinition, eventType, payload string, more ...process.Input) *Scenario[S] {
	s.t.Helper()
	stored := aggregate.EncodedEvent{Type: eventType, Payload: []byte(payload)}
	inputs, err := s.reactions.Stored(definition, stored, first(more))
	if err == nil && len(inputs) == 0 {
		err = fmt.Errorf("%w: its upcasters return no event", process.ErrIgnored)
	}
	if err != nil {
		if s.begin("event", eventType) {
			s.err = err
		}
		return s
	}
	for i, in := range inputs {
		s.event(shown(fmt.Sprintf("the stored %q %s", eventType, payload), in.Source), in)
		if i < len(inputs)-1 && errors.Is(s.err, process.ErrIgnored) {
			s.seen = true // no method can expect it
		}
	}
	return s
}

func first(more []process.Input) (in process.Input) {
	if len(more) > 0 {
		in = more[0]
	}
	return in
}

// event finds the process of an event, and calls its reaction. Text describes the event.
func (s *Scenario[S]) event(text string, in process.Input) {
	s.t.Helper()
	if !s.begin("event", in.Type) {
		return
	}
	key, ok, err := s.reactions.Key(in)
	again, _, _ := s.reactions.Key(in)
	switch {
	case err != nil:
		s.err = err
	case key != again:
		s.fail("its reaction returned process %q for %s, then process %q: the function that returns the process must be pure", key, text, again)
	case !ok:
		s.err = fmt.Errorf("%w: %s", process.ErrIgnored, s.whyNone(text, in))
	case s.key != "" && key != s.key:
		s.fail("its reaction returned process %q for %s, and %s belongs to process %q: correct the function that returns the process, or test each process by itself",
			key, text, s.keyFrom, s.key)
	default:
		in.Process = key
		s.passTo(in.OccurredAt)
		s.react(in)
	}
}

// WhenTimeout fires a timeout of the process with the given id. The name includes the key if the
// timeout has one. An earlier When or WhenTimeout must have set it, and its input has the time at
// which it is due by then: OccurredAt of the input whose step set it, or the latest time that the
// scenario knows, and the duration.
//
// More sets the other fields of the input, such as another OccurredAt. With more, the timeout fires
// even if the scenario has not set it, as one that was set before the scenario.
func (s *Scenario[S]) WhenTimeout(name, processID string, more ...process.Input) *Scenario[S] {
	s.t.Helper()
	if !s.begin("timeout", name) {
		return s
	}
	in := first(more)
	in.ID, in.Timeout, in.Process = cmp.Or(in.ID, "timeout"), name, processID
	due, isSet := s.set[name]
	if in.OccurredAt.IsZero() {
		in.OccurredAt = due
	}
	switch {
	case !isSet && len(more) == 0:
		s.fail("%s", s.whyNotSet(name))
	case s.key != "" && processID != s.key:
		s.fail("it is one of process %q, and %s belongs to process %q: pass %[3]q to WhenTimeout", processID, s.keyFrom, s.key)
	default:
		s.unset(name, "it has fired in "+s.input)
		s.passTo(in.OccurredAt)
		s.react(in)
	}
	return s
}

// passTo moves the time of the scenario forward.
func (s *Scenario[S]) passTo(at time.Time) {
	if at.After(s.now) {
		s.now = at
	}
}

// begin starts an input, unless the test has failed before.
func (s *Scenario[S]) begin(kind, name string) bool {
	s.t.Helper()
	if s.failed || s.refused() {
		return false
	}
	s.inputs++
	s.input = fmt.Sprintf("When %d (%s %q)", s.inputs, kind, name)
	s.step, s.err, s.seen = process.Step[S]{}, nil, false
	return true
}

// Then expects exactly these events of the process, in this order.
func (s *Scenario[S]) Then(want ...aggregate.Event[S]) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("events", s.history.Compare(want, s.step.Events()))
	}
	return s
}

// ThenCommands expects exactly these commands, in this order.
func (s *Scenario[S]) ThenCommands(want ...any) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("commands", diff.Lists(want, s.step.Commands()))
	}
	return s
}

// ThenTimeouts expects that exactly these timeouts were set or moved.
func (s *Scenario[S]) ThenTimeouts(want ...process.Timeout) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("timeouts", diff.Lists(want, s.step.Timeouts()))
	}
	return s
}

// ThenCancelled expects that exactly these timeouts were cancelled.
func (s *Scenario[S]) ThenCancelled(want ...string) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("cancelled timeouts", diff.Lists(want, s.step.Cancelled()))
	}
	return s
}

// ThenProcess expects that the inputs belong to the process with this id, as the key functions of
// their reactions say. The inputs may have been ignored.
func (s *Scenario[S]) ThenProcess(id string) *Scenario[S] {
	s.t.Helper()
	switch {
	case s.failed || !s.wasAsked() || s.key == id:
	case s.key == "":
		s.fail("expected the process %q, got none: %v", id, s.err)
	default:
		s.fail("expected the process %q, got %q, of %s", id, s.key, s.keyFrom)
	}
	return s
}

// ThenIgnored expects that the latest input was ignored, because the process had nothing to
// do.
func (s *Scenario[S]) ThenIgnored() *Scenario[S] {
	s.t.Helper()
	return s.refusal("to be ignored", process.ErrIgnored)
}

// ThenError expects an error for which errors.Is(err, target) is true.
func (s *Scenario[S]) ThenError(target error) *Scenario[S] {
	s.t.Helper()
	if target == nil {
		if !s.failed && s.wasAsked() {
			s.fail("ThenError(nil): pass the error that you expect, or omit ThenError if the input is handled")
		}
		return s
	}
	return s.refusal(fmt.Sprintf("the error %q", target), target)
}

func (s *Scenario[S]) refusal(expected string, target error) *Scenario[S] {
	s.t.Helper()
	switch {
	case s.failed || !s.wasAsked():
	case s.err == nil:
		s.fail("expected %s, but it was handled\n%s", expected, s.stepText())
	case !errors.Is(s.err, target):
		s.fail("expected %s, got the error: %v", expected, s.err)
	}
	s.seen = true
	return s
}

// ThenState expects this state of the process.
func (s *Scenario[S]) ThenState(want S) *Scenario[S] {
	s.t.Helper()
	if s.failed {
		return s
	}
	if text := diff.Values(want, s.state); text != "" {
		s.fail("the state is not as expected (-want +got)\n%s", text)
	}
	return s
}

// ThenEnded expects that the process has ended.
func (s *Scenario[S]) ThenEnded() *Scenario[S] {
	s.t.Helper()
	switch {
	case s.failed:
	case s.history.Len() == 0:
		s.fail("the process has not ended: it has not begun")
	case !s.definition.Ended(s.state):
		s.fail("the process has not ended: EndsWhen returns false for its state %s", diff.Show(s.state))
	}
	return s
}

func (s *Scenario[S]) fail(format string, args ...any) {
	s.t.Helper()
	s.failed = true
	s.t.Fatalf("%s: %s", s.where(), fmt.Sprintf(format, args...))
}

// handled reports whether the latest input led to a step that can be compared.
func (s *Scenario[S]) handled() bool {
	s.t.Helper()
	return !s.failed && s.wasAsked() && !s.refused()
}

func (s *Scenario[S]) wasAsked() bool {
	s.t.Helper()
	if s.inputs == 0 {
		s.fail("there was no input: call When before")
	}
	return s.inputs > 0
}

// refused fails the test if the latest input led to no step and the test did not expect that.
func (s *Scenario[S]) refused() bool {
	s.t.Helper()
	if s.err == nil || s.seen {
		return false
	}
	s.failed = true
	s.t.Fatalf("%s", s.unhandled())
	return true
}

// equal fails the test if there are differences, of what the noun names.
func (s *Scenario[S]) equal(noun, differences string) {
	s.t.Helper()
	if differences != "" {
		s.fail("the %s are not as expected (-want +got)\n%s\n%s", noun, differences, s.stepText())
	}
}
