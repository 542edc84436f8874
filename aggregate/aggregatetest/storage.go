package aggregatetest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
)

// record sends an event through the codec, adds it to the history and returns what came back.
func (s *Scenario[S]) record(what string, event aggregate.Event[S]) (aggregate.Event[S], bool) {
	s.t.Helper()
	encoded, err := s.definition.Encode(event)
	if err != nil {
		s.fail("%s: %v", what, err)
		return nil, false
	}
	decoded, err := s.definition.Decode(encoded.Type, encoded.Payload)
	if err != nil {
		s.fail("%s does not survive its codec: %v", what, err)
		return nil, false
	}
	if d, differs := diff.First(event, decoded); differs {
		s.fail("%s, %s, does not survive its codec: %s was %s and came back as %s", what, encoded.Type, d.Path, d.Want, d.Got)
		return nil, false
	}
	s.history = append(s.history, encoded)
	return decoded, true
}

// state returns the state after all events. It replays them each time, so no two results share
// memory.
func (s *Scenario[S]) state() (S, bool) {
	s.t.Helper()
	first, ok := s.replay()
	if !ok {
		return first, false
	}
	second, ok := s.replay()
	if !ok {
		return second, false
	}
	if d, differs := diff.First(first, second); differs {
		s.fail("applying the same events twice gives two states, at %s first %s, then %s: Apply must depend on the state and the event alone, an upcaster on the payload alone",
			d.Path, d.Want, d.Got)
		return first, false
	}
	return first, true
}

func (s *Scenario[S]) replay() (S, bool) {
	s.t.Helper()
	var state S
	for _, encoded := range s.history {
		if err := s.definition.Replay(&state, encoded.Type, encoded.Payload); err != nil {
			s.fail("%s, in the history as %s, cannot be read: %v", encoded.Type, payloadText(encoded.Payload), err)
			return state, false
		}
	}
	return state, true
}

// reload returns the state as restored from a snapshot of it.
func (s *Scenario[S]) reload(state S) (S, bool) {
	s.t.Helper()
	var reloaded S
	data, err := s.definition.Codec().Marshal(&state)
	if err == nil {
		err = s.definition.Codec().Unmarshal(data, &reloaded)
	}
	if err != nil {
		s.fail("the state does not survive its codec, so a snapshot would lose it: %v", err)
		return reloaded, false
	}
	if d, differs := diff.First(state, reloaded); differs {
		s.fail("the state does not survive its codec, so a snapshot would lose something: %s was %s and came back as %s", d.Path, d.Want, d.Got)
		return reloaded, false
	}
	return reloaded, true
}

// checkSnapshot checks that the aggregate can be loaded from a snapshot before or after the latest
// events. For example, an Apply that writes to a map panics if a snapshot has stored the empty map
// and a load returns nil.
func (s *Scenario[S]) checkSnapshot(before S) {
	s.t.Helper()
	reloaded, ok := s.reload(before)
	if !ok {
		return
	}
	s.definition.Apply(&reloaded, s.outcome.events...)
	after, ok := s.state()
	if !ok {
		return
	}
	if d, differs := diff.First(after, reloaded); differs {
		s.fail("the events have another effect on a state from a snapshot: %s is %s without it and %s with it", d.Path, d.Want, d.Got)
		return
	}
	s.reload(after)
}

// differ reports how two results of one decision differ.
func (s *Scenario[S]) differ(first, second outcome[S]) string {
	if a, b := fmt.Sprint(first.refusal), fmt.Sprint(second.refusal); a != b {
		return fmt.Sprintf("it returns the error %q, then %q", a, b)
	}
	if first.refusal != nil {
		return ""
	}
	if a, b := len(first.events), len(second.events); a != b {
		return fmt.Sprintf("it returns %s, then %d", diff.Count(a, "event"), b)
	}
	for i, event := range first.events {
		if d, differs := diff.First(event, second.events[i]); differs {
			return fmt.Sprintf("it returns %s, then %s (event %d differs at %s)", diff.Show(event), diff.Show(second.events[i]), i+1, d.Path)
		}
	}
	return ""
}

// mismatch reports how a list of events differs from the expected one, "" if it does not.
func (s *Scenario[S]) mismatch(want, got aggregate.Events[S]) string {
	return diff.Events(s.definition).Compare(diff.Values(want), diff.Values(got))
}

func (s *Scenario[S]) list(events aggregate.Events[S]) string {
	return diff.Events(s.definition).List(diff.Values(events))
}

func isText(payload []byte) bool {
	return utf8.Valid(payload) && !strings.ContainsRune(string(payload), 0)
}

func payloadText(payload []byte) string {
	if !isText(payload) {
		return fmt.Sprintf("%x", payload)
	}
	return string(payload)
}
