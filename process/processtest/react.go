package processtest

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
	"github.com/millrace-dev/millrace/internal/trial"
	"github.com/millrace-dev/millrace/process"
)

// run is the result of a call of a reaction.
type run[S any] struct {
	step process.Step[S]
	err  error
}

// react calls the reaction to an input, and applies its step.
func (s *Scenario[S]) react(in process.Input) {
	s.t.Helper()
	if s.key == "" {
		s.key, s.keyFrom = in.Process, s.input
	}
	result, ok := s.try(in)
	if !ok {
		return
	}
	s.step, s.err = result.step, result.err
	if s.endedBy != "" && errors.Is(s.err, process.ErrIgnored) {
		s.err = fmt.Errorf("%w: %s led to the state %s", s.err, s.endedBy, diff.Show(s.state))
	}
	if s.err != nil || !s.apply(s.step.Events()) || !s.sendable(s.step.Commands()) {
		return
	}
	for _, name := range s.step.Cancelled() {
		if _, isSet := s.set[name]; isSet {
			s.unset(name, "it was cancelled by "+s.input)
		}
	}
	for _, t := range s.step.Timeouts() {
		s.set[t.Name] = t.At
		if t.At.IsZero() {
			s.set[t.Name] = s.now.Add(t.After)
		}
	}
}

// try calls the reaction three times, on copies of the state, and compares the results.
func (s *Scenario[S]) try(in process.Input) (first run[S], ok bool) {
	s.t.Helper()
	states, err := s.history.States()
	if !s.holds(err) {
		return first, false
	}
	var runs [3]run[S]
	var results [3]trial.Result
	for n, state := range states.Runs {
		runs[n].step, runs[n].err = s.reactions.React(state, s.history.Len() > 0, in)
		results[n].Err = runs[n].err
		for _, part := range parts(runs[n].step) {
			results[n].Values = append(results[n].Values, part.values...)
		}
	}
	const advice = "take times and ids from the state, the event or the input, such as in.OccurredAt and in.ID"
	return runs[0], s.holds(states.Check("reaction", advice, results))
}

// apply stores events and reads them back, as a load does.
func (s *Scenario[S]) apply(events aggregate.Events[S]) bool {
	s.t.Helper()
	stored, err := s.history.Record("event", events...)
	if !s.holds(err) || !s.holds(s.history.CheckSnapshot(s.state, stored)) {
		return false
	}
	state, err := s.history.State()
	if !s.holds(err) {
		return false
	}
	s.state = state
	if s.endedBy == "" && s.history.Len() > 0 && s.definition.Ended(s.state) {
		s.endedBy = s.where()
	}
	return true
}

func (s *Scenario[S]) unset(name, why string) {
	delete(s.set, name)
	s.gone[name] = why
}

// holds fails the test on an error.
func (s *Scenario[S]) holds(err error) bool {
	s.t.Helper()
	if err != nil {
		s.fail("%v", err)
	}
	return err == nil
}
