package aggregatetest

import "fmt"

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
	if where := s.states.Changed(); where != "" {
		s.fail("the decision changed the state it was given, %s", where)
		return
	}
	if why := s.differ(first, s.runs[1]); why != "" {
		s.fail("the decision is not pure, made twice on the same state %s: pass times, ids and the like as arguments to what makes the decision", why)
		return
	}
	if why := s.differ(first, s.runs[2]); why != "" {
		s.fail("on the same state from a snapshot the decision returns another result, %s: treat nil and empty slices and maps alike", why)
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
