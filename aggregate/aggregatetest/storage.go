package aggregatetest

import "github.com/millrace-dev/millrace/aggregate"

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
