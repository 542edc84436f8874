package aggregatetest

import (
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/internal/trial"
)

// record sends an event through the codec, adds it to the history and returns what came back.
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

// differ reports how two results of one decision differ.
func (s *Scenario[S]) differ(first, second outcome[S]) string {
	if why := trial.Errors(first.refusal, second.refusal); why != "" || first.refusal != nil {
		return why
	}
	return trial.Lists("event", diff.Values(first.events), diff.Values(second.events))
}

// mismatch reports how a list of events differs from the expected one, "" if it does not.
func (s *Scenario[S]) mismatch(want, got aggregate.Events[S]) string {
	return diff.Events(s.definition).Compare(diff.Values(want), diff.Values(got))
}

func (s *Scenario[S]) list(events aggregate.Events[S]) string {
	return diff.Events(s.definition).List(diff.Values(events))
}
