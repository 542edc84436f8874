package aggregatetest

import (
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/internal/trial"
)

// begin starts a step and makes the states for the runs of its decision.
func (s *Scenario[S]) begin() bool {
	s.t.Helper()
	s.step++
	s.runs, s.outcome = [3]outcome[S]{}, outcome[S]{}
	states, err := s.history.States()
	s.states = states
	return s.holds(err)
}

// end compares the runs of a decision and adds its events to the history.
func (s *Scenario[S]) end() {
	s.t.Helper()
	first := s.runs[0]
	var results [3]trial.Result
	for n, run := range s.runs {
		results[n] = trial.Result{Values: diff.Any(run.events), Err: run.refusal}
	}
	const advice = "pass times, ids and the like as arguments to what makes the decision"
	if !s.holds(s.states.Check("decision", advice, results)) {
		return
	}
	if first.refusal != nil {
		s.outcome.refusal = first.refusal
		return
	}
	before, ok := s.state()
	if !ok {
		return
	}
	var err error
	if s.outcome.events, err = s.history.Record("produced event", first.events...); err == nil {
		err = s.history.CheckSnapshot(before, s.outcome.events)
	}
	s.holds(err)
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
