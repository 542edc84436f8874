package aggregatetest

import (
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/internal/trial"
)

// record encodes and decodes an event with the codec, adds it to the history, and returns the
// decoded event.
func (s *Scenario[S]) record(what string, event aggregate.Event[S]) (aggregate.Event[S], bool) {
	s.t.Helper()
	decoded, err := s.history.Record(what, event)
	return decoded, s.holds(err)
}

// state returns a copy of the state after all events.
func (s *Scenario[S]) state() (S, bool) {
	s.t.Helper()
	state, err := s.history.State()
	return state, s.holds(err)
}

// holds fails the test on an error.
func (s *Scenario[S]) holds(err error) bool {
	s.t.Helper()
	if err != nil {
		s.fail("%v", err)
	}
	return err == nil
}

// differ describes how two results of one decision differ. It returns "" if they are equal.
func (s *Scenario[S]) differ(first, second outcome[S]) string {
	if why := trial.Errors(first.refusal, second.refusal); why != "" || first.refusal != nil {
		return why
	}
	return trial.Lists("event", diff.Values(first.events), diff.Values(second.events))
}

// mismatch describes how events differ from the expected ones. It returns "" if they are equal.
func (s *Scenario[S]) mismatch(want, got aggregate.Events[S]) string {
	return diff.Events(s.definition).Compare(diff.Values(want), diff.Values(got))
}

func (s *Scenario[S]) list(events aggregate.Events[S]) string {
	return diff.Events(s.definition).List(diff.Values(events))
}
