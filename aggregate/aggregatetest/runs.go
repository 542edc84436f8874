package aggregatetest

import (
	"fmt"

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
	for i, event := range first.events {
		decoded, ok := s.record(fmt.Sprintf("produced event %d", i+1), event)
		if !ok {
			return
		}
		s.outcome.events = append(s.outcome.events, decoded)
	}
	s.holds(s.history.CheckSnapshot(before, s.outcome.events))
}
