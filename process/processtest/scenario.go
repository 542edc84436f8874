package processtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/process"
)

// Scenario is one test of one process, started by [Given]. Its methods return it, so that they can
// be chained. The first failure ends the test, by t.Fatalf; what follows it does nothing.
//
// All inputs must belong to that one process. The first input with a key says which process it is.
// An input with another key fails the test, as it would reach another process in production.
type Scenario[S any] struct {
	t          testing.TB
	definition process.Definition[S]
	state      S
	exists     bool
	inputs     int               // number of inputs so far
	input      string            // the latest
	key        string            // of the process, after its first input
	keyFrom    string            // the first input of that key
	overFrom   string            // the input that made the process over
	set        map[string]bool   // timeouts
	gone       map[string]string // timeouts that were set, and why they are not any more
	step       process.Step[S]
	err        error // of the latest input, also if it was passed over
	seen       bool  // whether the test has expected err
	failed     bool
}

// Given starts a scenario with a process to which the events have happened. Without events it has
// not begun.
func Given[S any](t testing.TB, definition process.Definition[S], events ...aggregate.Event[S]) *Scenario[S] {
	t.Helper()
	s := &Scenario[S]{t: t, definition: definition, set: map[string]bool{}, gone: map[string]string{}}
	if err := definition.Validate(); err != nil {
		s.fail("%v", err)
		return s
	}
	s.apply(events)
	t.Cleanup(func() {
		t.Helper()
		if s.err != nil && !s.seen && !s.failed {
			t.Errorf("%s", s.unhandled())
		}
	})
	return s
}

// When passes an event to the process. More sets the other fields of its input, such as Source, if
// reactions use them.
func (s *Scenario[S]) When(event interface{ EventType() string }, more ...process.Input) *Scenario[S] {
	s.t.Helper()
	if event == nil {
		s.fail("the event is nil")
		return s
	}
	var in process.Input
	if len(more) > 0 {
		in = more[0]
	}
	in = process.Event(event, in)
	if !s.begin("event", in.Type) {
		return s
	}
	key, ok, err := s.definition.Key(in)
	switch {
	case err != nil:
		s.err = err
	case !ok:
		s.err = fmt.Errorf("%w: %s", process.ErrPassedOver, s.whyNone(event, in))
	case s.key != "" && key != s.key:
		s.fail("its reaction returned process %q for %s, and %s belongs to process %q: correct the function that returns the process, or test each process by itself",
			key, shown(event, in), s.keyFrom, s.key)
	default:
		in.Process = key
		s.react(in)
	}
	return s
}

// WhenTimeout fires a timeout of the process. An earlier When or WhenTimeout must have set it.
func (s *Scenario[S]) WhenTimeout(name, processID string) *Scenario[S] {
	s.t.Helper()
	if !s.begin("timeout", name) {
		return s
	}
	switch {
	case !s.set[name]:
		s.fail("%s", s.whyNotSet(name))
	case processID != s.key:
		s.fail("it is one of process %q, and %s belongs to process %q: pass %[3]q to WhenTimeout", processID, s.keyFrom, s.key)
	default:
		s.unset(name, "it has fired in "+s.input)
		s.react(process.Input{ID: "timeout", Timeout: name, Process: processID})
	}
	return s
}

// begin begins with an input, unless the test has failed before.
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

func (s *Scenario[S]) react(in process.Input) {
	s.t.Helper()
	if s.key == "" {
		s.key, s.keyFrom = in.Process, s.input
	}
	s.step, s.err = s.definition.React(s.state, s.exists, in)
	if s.overFrom != "" && errors.Is(s.err, process.ErrPassedOver) {
		s.err = fmt.Errorf("%w since %s, which led to the state %s", s.err, s.overFrom, diff.Show(s.state))
	}
	if s.err != nil {
		return
	}
	s.apply(s.step.Events())
	for _, name := range s.step.Cancelled() {
		if s.set[name] {
			s.unset(name, "it was cancelled by "+s.input)
		}
	}
	for _, t := range s.step.Timeouts() {
		s.set[t.Name] = true
	}
}

func (s *Scenario[S]) unset(name, why string) {
	delete(s.set, name)
	s.gone[name] = why
}

// apply stores events and reads them back, as a load does.
func (s *Scenario[S]) apply(events aggregate.Events[S]) {
	s.t.Helper()
	d := s.definition.Aggregate()
	for i, event := range events {
		stored, err := d.Encode(event)
		if err == nil {
			err = d.Replay(&s.state, stored.Type, stored.Payload)
		}
		if err != nil {
			s.fail("event %d (%T) cannot be stored and read back: %v", i+1, event, err)
			return
		}
		s.exists = true
	}
	if s.overFrom == "" && s.exists && s.definition.IsOver(s.state) {
		s.overFrom = s.where()
	}
}

// Then expects exactly these events of the process, in this order.
func (s *Scenario[S]) Then(want ...aggregate.Event[S]) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal(diff.Events(s.definition.Aggregate()), diff.Values(want), diff.Values(s.step.Events()))
	}
	return s
}

// ThenCommands expects exactly these commands, in this order.
func (s *Scenario[S]) ThenCommands(want ...any) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal(commands, diff.Values(want), diff.Values(s.step.Commands()))
	}
	return s
}

// ThenTimeouts expects that exactly these timeouts were set or moved.
func (s *Scenario[S]) ThenTimeouts(want ...process.Timeout) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal(timeouts, diff.Values(want), diff.Values(s.step.Timeouts()))
	}
	return s
}

// ThenCancelled expects that exactly these timeouts were cancelled.
func (s *Scenario[S]) ThenCancelled(want ...string) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal(cancelled, diff.Values(want), diff.Values(s.step.Cancelled()))
	}
	return s
}

// ThenProcess expects that the inputs belong to the process with this id, by their reactions. They
// may have been passed over.
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

// ThenPassedOver expects that the latest input was passed over: that the process had nothing to do.
func (s *Scenario[S]) ThenPassedOver() *Scenario[S] {
	s.t.Helper()
	return s.refusal("to be passed over", process.ErrPassedOver)
}

// ThenError expects an error that is target, by errors.Is.
func (s *Scenario[S]) ThenError(target error) *Scenario[S] {
	s.t.Helper()
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

// ThenState expects the state of the process.
func (s *Scenario[S]) ThenState(want S) *Scenario[S] {
	s.t.Helper()
	if s.failed {
		return s
	}
	if why := diff.Fields(want, s.state); why != "" {
		s.fail("the state is not as expected\n%s\ngot %s", why, diff.Show(s.state))
	}
	return s
}

// ThenOver expects that the process is over.
func (s *Scenario[S]) ThenOver() *Scenario[S] {
	s.t.Helper()
	switch {
	case s.failed:
	case !s.exists:
		s.fail("the process is not over: it has not begun")
	case !s.definition.IsOver(s.state):
		s.fail("the process is not over: OverWhen does not hold for its state %s", diff.Show(s.state))
	}
	return s
}

func (s *Scenario[S]) fail(format string, args ...any) {
	s.t.Helper()
	s.failed = true
	s.t.Fatalf("%s: %s", s.where(), fmt.Sprintf(format, args...))
}

// handled reports that the latest input led to a step to compare.
func (s *Scenario[S]) handled() bool {
	s.t.Helper()
	return !s.failed && s.wasAsked() && !s.refused()
}

func (s *Scenario[S]) wasAsked() bool {
	s.t.Helper()
	if s.inputs == 0 {
		s.fail("nothing has come yet: put a When before")
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

func (s *Scenario[S]) equal(kind diff.Kind, want, got []any) {
	s.t.Helper()
	if why := kind.Compare(want, got); why != "" {
		s.fail("the %ss are not as expected\n%s\n%s", kind.Noun, why, s.stepText())
	}
}
