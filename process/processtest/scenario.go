package processtest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

// Scenario is one test of one process, started by [Given]. Its methods return it, so that they can
// be chained. The first failure ends the test, by t.Fatalf; what follows it does nothing.
//
// Whatever comes must be for that one process: the first input with a key says which it is, and one
// whose key is another fails, as it would not reach this process outside of the test either.
type Scenario[S any] struct {
	t          testing.TB
	definition process.Definition[S]
	state      S
	exists     bool
	key        string          // of the process, once something has come for it
	set        map[string]bool // timeouts
	step       process.Step[S]
	err        error
	seen       bool // that there was an error, or nothing to do
	asked      bool
	failed     bool
}

// Given starts a scenario with a process to which the events have happened. Without events it has
// not begun.
func Given[S any](t testing.TB, definition process.Definition[S], events ...aggregate.Event[S]) *Scenario[S] {
	t.Helper()
	s := &Scenario[S]{t: t, definition: definition, set: map[string]bool{}}
	if err := definition.Validate(); err != nil {
		s.fail("%v", err)
		return s
	}
	s.apply(events)
	t.Cleanup(func() {
		t.Helper()
		if s.err != nil && !s.seen && !s.failed {
			t.Errorf("the last input was not handled: %v", s.err)
		}
	})
	return s
}

// When has an event come. More says where it comes from, if reactions look at that.
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
	return s.react(process.Event(event, in))
}

// WhenTimeout has a timeout of the process fire. It must be set, by a When before.
func (s *Scenario[S]) WhenTimeout(name, processID string) *Scenario[S] {
	s.t.Helper()
	if !s.failed && !s.set[name] {
		s.fail("the timeout %q is not set: %v are", name, slices.Sorted(maps.Keys(s.set)))
		return s
	}
	delete(s.set, name)
	return s.react(process.Input{ID: "timeout", Timeout: name, Process: processID})
}

func (s *Scenario[S]) react(in process.Input) *Scenario[S] {
	s.t.Helper()
	if s.failed || s.refused() {
		return s
	}
	s.step, s.err, s.seen, s.asked = process.Step[S]{}, nil, false, true
	key, ok, err := s.definition.Key(in)
	if err == nil && !ok {
		err = fmt.Errorf("%w: it belongs to no process", process.ErrPassedOver)
	}
	if err != nil {
		s.err = err
		return s
	}
	if s.key == "" {
		s.key = key
	}
	if key != s.key {
		s.fail("%s belongs to process %q, and what came before to %q: correct its key, or test each process by itself", inputName(in), key, s.key)
		return s
	}
	if s.step, s.err = s.definition.React(s.state, s.exists, in); s.err != nil {
		return s
	}
	s.apply(s.step.Events)
	for _, name := range s.step.Cancel {
		delete(s.set, name)
	}
	for _, t := range s.step.Timeouts {
		s.set[t.Name] = true
	}
	return s
}

func inputName(in process.Input) string {
	if in.Timeout != "" {
		return fmt.Sprintf("the timeout %q", in.Timeout)
	}
	return fmt.Sprintf("the event %q", in.Type)
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
}

// Then expects exactly these events of the process, in this order.
func (s *Scenario[S]) Then(want ...aggregate.Event[S]) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("events", list(want), list(s.step.Events))
	}
	return s
}

// ThenCommands expects exactly these commands, in this order.
func (s *Scenario[S]) ThenCommands(want ...any) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("commands", list(want), list(s.step.Commands))
	}
	return s
}

// ThenTimeouts expects that exactly these timeouts were set or moved.
func (s *Scenario[S]) ThenTimeouts(want ...process.Timeout) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("timeouts", list(want), list(s.step.Timeouts))
	}
	return s
}

// ThenCancelled expects that exactly these timeouts were cancelled.
func (s *Scenario[S]) ThenCancelled(want ...string) *Scenario[S] {
	s.t.Helper()
	if s.handled() {
		s.equal("cancelled timeouts", list(want), list(s.step.Cancel))
	}
	return s
}

// ThenProcess expects that what came belongs to the process of an id, which its reaction made of
// it. It may have been passed over.
func (s *Scenario[S]) ThenProcess(id string) *Scenario[S] {
	s.t.Helper()
	if !s.failed && s.wasAsked() && s.key != id {
		s.fail("expected the process %q, got %q", id, s.key)
	}
	return s
}

// ThenPassedOver expects that there was nothing to do.
func (s *Scenario[S]) ThenPassedOver() *Scenario[S] {
	s.t.Helper()
	return s.ThenError(process.ErrPassedOver)
}

// ThenError expects an error that is target, by errors.Is.
func (s *Scenario[S]) ThenError(target error) *Scenario[S] {
	s.t.Helper()
	if s.failed || !s.wasAsked() {
		return s
	}
	if !errors.Is(s.err, target) {
		s.fail("expected the error %q, got %v", target, s.err)
	}
	s.seen = true
	return s
}

// ThenState expects the state of the process.
func (s *Scenario[S]) ThenState(want S) *Scenario[S] {
	s.t.Helper()
	if !s.failed && !reflect.DeepEqual(want, s.state) {
		s.fail("expected the state %+v, got %+v", want, s.state)
	}
	return s
}

// ThenOver expects that the process is over.
func (s *Scenario[S]) ThenOver() *Scenario[S] {
	s.t.Helper()
	if !s.failed && (!s.exists || !s.definition.IsOver(s.state)) {
		s.fail("the process is not over: its state is %+v", s.state)
	}
	return s
}

func (s *Scenario[S]) fail(format string, args ...any) {
	s.t.Helper()
	s.failed = true
	s.t.Fatalf(format, args...)
}

// handled reports that the latest input was handled, so that there is something to look at.
func (s *Scenario[S]) handled() bool {
	s.t.Helper()
	return !s.failed && s.wasAsked() && !s.refused()
}

func (s *Scenario[S]) wasAsked() bool {
	s.t.Helper()
	if !s.asked {
		s.fail("nothing has come yet: put a When before")
	}
	return s.asked
}

// refused fails if the latest input was not handled and nobody expected that.
func (s *Scenario[S]) refused() bool {
	s.t.Helper()
	if s.err == nil || s.seen {
		return false
	}
	s.fail("the last input was not handled: %v", s.err)
	return true
}

func (s *Scenario[S]) equal(what string, want, got []any) {
	s.t.Helper()
	if !slices.EqualFunc(want, got, reflect.DeepEqual) {
		s.fail("expected the %s %s, got %s", what, show(want), show(got))
	}
}

func list[T any](values []T) (out []any) {
	for _, v := range values {
		out = append(out, v)
	}
	return out
}

func show(values []any) string {
	if len(values) == 0 {
		return "none"
	}
	text := ""
	for i, v := range values {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%T%+v", v, v)
	}
	return text
}
