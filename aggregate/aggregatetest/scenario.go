package aggregatetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/internal/trial"
)

// Scenario tests one aggregate. [Given] makes it. Its methods return it, so that steps can be
// chained. The first failure ends the test by t.Fatalf; later steps do nothing.
type Scenario[S any] struct {
	t           testing.TB
	definition  aggregate.Definition[S]
	history     trial.History[S]
	step        int             // 0 until the first When
	states      trial.States[S] // for the runs of the latest decision
	runs        [3]outcome[S]
	outcome     outcome[S]
	participant aggregate.Participant[S]
	failed      bool
}

// outcome is the result of the latest decision.
type outcome[S any] struct {
	events  aggregate.Events[S]
	refusal error
	seen    bool // a method has expected or reported the refusal
}

// Given starts a scenario of an aggregate to which the events have happened. Without events, it
// starts with the aggregate before its first event.
func Given[S any](t testing.TB, definition aggregate.Definition[S], events ...aggregate.Event[S]) *Scenario[S] {
	t.Helper()
	s := &Scenario[S]{t: t, definition: definition, history: trial.Of(definition)}
	s.participant.ID.Type = definition.Type()
	if err := definition.Validate(); err != nil {
		s.fail("%v", err)
		return s
	}
	if _, err := s.history.Record("event", events...); !s.holds(err) {
		return s
	}
	t.Cleanup(func() {
		t.Helper()
		if s.refused() {
			t.Error(s.unexpectedRefusal())
		}
		if !s.failed && len(s.participant.Events) > 0 {
			t.Error(s.where() + ": " + forgotten)
		}
	})
	return s
}

// Stored adds an event to the history in the form in which the journal stores it. Use it for an
// event that an older program has written and that an upcaster reads now:
//
//	aggregatetest.Given(t, Accounts).
//		Stored("account.deposited.v1", `{"Cents":500}`).
//		ThenState(Account{Balance: 5})
//
// Call it before the first When. It fails the test if a load could not read the event.
func (s *Scenario[S]) Stored(eventType, payload string) *Scenario[S] {
	s.t.Helper()
	if s.failed {
		return s
	}
	if s.step > 0 {
		s.fail("Stored comes too late: put it before the first When")
		return s
	}
	s.history.Add(aggregate.EncodedEvent{Type: eventType, Payload: []byte(payload)})
	if state, ok := s.state(); ok {
		_, err := s.history.Reload(state)
		s.holds(err)
	}
	return s
}

// When makes a decision on the state so far. The events that it returns become part of the history,
// so the next When decides on the state after them. A refusal leaves the state unchanged.
func (s *Scenario[S]) When(decide aggregate.Decision[S]) *Scenario[S] {
	s.t.Helper()
	if s.failed || s.failOnRefusal() {
		return s
	}
	if decide == nil {
		s.step++
		s.fail("the decision is nil")
		return s
	}
	if !s.begin() {
		return s
	}
	for n := range s.runs {
		run := &s.runs[n]
		run.events, run.refusal = decide(s.states.Runs[n])
	}
	s.end()
	return s
}

// Then expects that the latest decision was accepted and returned exactly these events, in this
// order.
func (s *Scenario[S]) Then(want ...aggregate.Event[S]) *Scenario[S] {
	s.t.Helper()
	if !s.decided("Then") || s.failOnRefusal() {
		return s
	}
	if text := s.history.Compare(want, s.outcome.events); text != "" {
		s.fail("the events are not as expected (-want +got)\n%s", text)
	}
	return s
}

// ThenNothing expects that the latest decision was accepted and returned no event.
func (s *Scenario[S]) ThenNothing() *Scenario[S] {
	s.t.Helper()
	if !s.decided("ThenNothing") || s.failOnRefusal() {
		return s
	}
	if text := s.history.Compare(nil, s.outcome.events); text != "" {
		s.fail("expected no events, got %s\n%s", diff.Count(len(s.outcome.events), "event"), text)
	}
	return s
}

// ThenError expects that the latest decision returned an error for which errors.Is(err, target) is
// true.
func (s *Scenario[S]) ThenError(target error) *Scenario[S] {
	s.t.Helper()
	if target == nil {
		if s.decided("ThenError") {
			s.fail("ThenError needs an error: use ThenNothing or Then for a decision that is accepted")
		}
		return s
	}
	return s.thenRefused(fmt.Sprintf("%q", target), func(_ testing.TB, err error) bool { return errors.Is(err, target) })
}

// ThenErrorFunc expects that the latest decision returned an error, and passes it to check. Check
// reports its failures to t.
func (s *Scenario[S]) ThenErrorFunc(check func(t testing.TB, err error)) *Scenario[S] {
	s.t.Helper()
	return s.thenRefused("an error", func(t testing.TB, err error) bool {
		t.Helper()
		check(t, err)
		return true
	})
}

func (s *Scenario[S]) thenRefused(wanted string, accepts func(testing.TB, error) bool) *Scenario[S] {
	s.t.Helper()
	if !s.decided("ThenError") {
		return s
	}
	if s.outcome.refusal == nil {
		events := diff.Count(len(s.outcome.events), "event") + "\n" + s.history.Compare(nil, s.outcome.events)
		s.fail("expected a refusal with %s, but the decision was accepted with %s", wanted, strings.TrimSpace(events))
		return s
	}
	s.outcome.seen = true
	if !accepts(s.t, s.outcome.refusal) {
		s.fail("expected a refusal with %s, got %q", wanted, s.outcome.refusal)
	}
	return s
}

// ThenState expects this state after all events so far, given and produced. It can be called before
// the first When too.
func (s *Scenario[S]) ThenState(want S) *Scenario[S] {
	s.t.Helper()
	return s.ThenStateFunc(func(t testing.TB, got S) {
		t.Helper()
		if text := diff.Values(want, got); text != "" {
			s.fail("the state is not as expected (-want +got)\n%s", text)
		}
	})
}

// ThenStateFunc passes the state after all events so far to check, which reports its failures to t.
// The state is a copy that check may change.
func (s *Scenario[S]) ThenStateFunc(check func(t testing.TB, state S)) *Scenario[S] {
	s.t.Helper()
	if s.failed || s.failOnRefusal() {
		return s
	}
	if state, ok := s.state(); ok {
		check(s.t, state)
	}
	return s
}

// decided reports whether a decision was made whose outcome can be checked.
func (s *Scenario[S]) decided(method string) bool {
	s.t.Helper()
	switch {
	case s.failed:
	case len(s.participant.Events) > 0:
		s.fail("%s", forgotten)
	case s.step == 0:
		s.fail("%s needs a When before it", method)
	}
	return !s.failed
}

func (s *Scenario[S]) refused() bool {
	return !s.failed && s.outcome.refusal != nil && !s.outcome.seen
}

func (s *Scenario[S]) unexpectedRefusal() string {
	return fmt.Sprintf("%s: the decision was refused with %q and no ThenError expects that", s.where(), s.outcome.refusal)
}

func (s *Scenario[S]) failOnRefusal() bool {
	s.t.Helper()
	if !s.refused() {
		return false
	}
	s.failed = true
	s.t.Fatal(s.unexpectedRefusal())
	return true
}

func (s *Scenario[S]) fail(format string, args ...any) {
	s.t.Helper()
	s.failed = true
	s.t.Fatalf("%s: %s", s.where(), fmt.Sprintf(format, args...))
}

func (s *Scenario[S]) where() string {
	if s.step == 0 {
		return "Given"
	}
	return fmt.Sprintf("When %d (after %s)", s.step, diff.Count(s.history.Len()-len(s.outcome.events), "event"))
}
