package aggregatetest

import (
	"fmt"

	"github.com/millrace-dev/millrace/internal/diff"
)

// trial is a decision that is made three times, each time on its own copy of the state: twice to
// check that it is pure, and once on the state as restored from a snapshot.
type trial[S any] struct {
	before S // shows whether the decision changed its state
	states [3]S
	runs   [3]outcome[S]
}

// begin begins a step, and makes the states for its decision.
func (s *Scenario[S]) begin() (ok bool) {
	s.t.Helper()
	s.step++
	s.trial, s.outcome = trial[S]{}, outcome[S]{}
	for _, state := range []*S{&s.trial.before, &s.trial.states[0], &s.trial.states[1]} {
		if *state, ok = s.state(); !ok {
			return false
		}
	}
	s.trial.states[2], ok = s.reload(s.trial.before)
	return ok
}

// end compares the runs of a decision, and adds the events to the history.
func (s *Scenario[S]) end() {
	s.t.Helper()
	first := s.trial.runs[0]
	if d, differs := diff.First(s.trial.before, s.trial.states[0]); differs {
		s.fail("the decision changed the state it was given, at %s from %s to %s: copy maps, slices and what pointers lead to before changing them",
			d.Path, d.Want, d.Got)
		return
	}
	if why := s.differ(first, s.trial.runs[1]); why != "" {
		s.fail("the decision is not pure, made twice on the same state %s: pass times, ids and the like as arguments to what makes the decision", why)
		return
	}
	if why := s.differ(first, s.trial.runs[2]); why != "" {
		s.fail("on the same state from a snapshot the decision comes out differently, %s: it must not tell nil from empty", why)
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
	s.checkSnapshot(before)
}
