package aggregatetest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
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
	if d, differs := compare(event, decoded); differs {
		s.fail("%s, %s, does not survive its codec: %s was %s and came back as %s", what, encoded.Type, d.path, d.want, d.got)
		return nil, false
	}
	s.history = append(s.history, encoded)
	return decoded, true
}

// state is the state after all events, made anew each time so that no two results share memory.
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
	if d, differs := compare(first, second); differs {
		s.fail("applying the same events twice gives two states, at %s first %s, then %s: Apply must depend on the state and the event alone, an upcaster on the payload alone",
			d.path, d.want, d.got)
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
	if d, differs := compare(state, reloaded); differs {
		s.fail("the state does not survive its codec, so a snapshot would lose something: %s was %s and came back as %s", d.path, d.want, d.got)
		return reloaded, false
	}
	return reloaded, true
}

// checkSnapshot checks that a snapshot could stand before or after the latest events. An Apply that
// needs a map which was empty and comes back as nil, for one, works without a snapshot and panics
// with one.
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
	if d, differs := compare(after, reloaded); differs {
		s.fail("the events have another effect on a state from a snapshot: %s is %s without it and %s with it", d.path, d.want, d.got)
		return
	}
	s.reload(after)
}

// differ reports how two results of one decision differ.
func (s *Scenario[S]) differ(first, second outcome[S]) string {
	if a, b := fmt.Sprint(first.refusal), fmt.Sprint(second.refusal); a != b {
		return fmt.Sprintf("it gives the error %q, then %q", a, b)
	}
	if first.refusal != nil {
		return ""
	}
	if why := s.mismatch(first.events, second.events); why != "" {
		return fmt.Sprintf("it gives %s, then %s (%s)", s.list(first.events), s.list(second.events), why)
	}
	return ""
}

// mismatch reports where two lists of events part, "" if they do not.
func (s *Scenario[S]) mismatch(want, got aggregate.Events[S]) string {
	for i := range min(len(want), len(got)) {
		if d, differs := compare(want[i], got[i]); differs {
			return fmt.Sprintf("event %d differs at %s: expected %s, got %s", i+1, d.path, d.want, d.got)
		}
	}
	if len(want) != len(got) {
		return fmt.Sprintf("expected %s, got %d", count(len(want), "event"), len(got))
	}
	return ""
}

func (s *Scenario[S]) list(events aggregate.Events[S]) string {
	if len(events) == 0 {
		return "no events"
	}
	var text strings.Builder
	text.WriteString(count(len(events), "event"))
	for i, event := range events {
		fmt.Fprintf(&text, "\n  %d. %s", i+1, s.describe(event))
	}
	return text.String()
}

// describe shows an event as it is stored if that can be read, since the payload has no addresses
// in it.
func (s *Scenario[S]) describe(event aggregate.Event[S]) string {
	encoded, err := s.definition.Encode(event)
	if err != nil {
		return fmt.Sprintf("%+v (%v)", event, err)
	}
	if !isText(encoded.Payload) {
		return fmt.Sprintf("%s %+v", encoded.Type, event)
	}
	return fmt.Sprintf("%s %s", encoded.Type, encoded.Payload)
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

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
