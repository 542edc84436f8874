package trial

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/diff"
)

// History holds the stored events of an aggregate. Its errors say what a codec would lose or
// change.
type History[S any] struct {
	definition aggregate.Definition[S]
	events     []aggregate.EncodedEvent
}

// Of returns the history of an aggregate without events.
func Of[S any](definition aggregate.Definition[S]) History[S] {
	return History[S]{definition: definition}
}

// Len returns the number of events.
func (h *History[S]) Len() int { return len(h.events) }

// Add adds an event in stored form.
func (h *History[S]) Add(stored aggregate.EncodedEvent) { h.events = append(h.events, stored) }

// Record encodes and decodes events with their codec, adds them, and returns the decoded events. It
// stops at the first error. Noun names one event in errors.
func (h *History[S]) Record(noun string, events ...aggregate.Event[S]) (decoded aggregate.Events[S], err error) {
	for i, event := range events {
		what := fmt.Sprintf("%s %d", noun, i+1)
		encoded, err := h.definition.Encode(event)
		if err != nil {
			return decoded, fmt.Errorf("%s: %w", what, err)
		}
		copied, err := h.definition.Decode(encoded.Type, encoded.Payload)
		if err != nil {
			return decoded, fmt.Errorf("%s does not survive its codec: %w", what, err)
		}
		if lost := diff.Values(event, copied); lost != "" {
			return decoded, fmt.Errorf("%s, %s, does not survive its codec (-before +after)\n%s", what, encoded.Type, lost)
		}
		h.Add(encoded)
		decoded = append(decoded, copied)
	}
	return decoded, nil
}

// Compare returns the differences of events from the expected ones, "" if there are none. It says
// which of the expected events cannot be encoded.
func (h *History[S]) Compare(want, got aggregate.Events[S]) string {
	text := diff.Lists(want, got)
	if text == "" {
		return ""
	}
	for i, event := range want {
		if _, err := h.definition.Encode(event); err != nil {
			text += fmt.Sprintf("\nexpected event %d: %v", i+1, err)
		}
	}
	return text
}

// State returns the state after all events. It replays them in each call, so results never share
// memory.
func (h *History[S]) State() (S, error) {
	first, err := h.replay()
	if err != nil {
		return first, err
	}
	second, err := h.replay()
	if err != nil {
		return second, err
	}
	if text := diff.Values(first, second); text != "" {
		return first, fmt.Errorf("applying the same events twice results in two states: Apply must depend only on the state and the event, and an upcaster only on the payload (-first +second)\n%s", text)
	}
	return first, nil
}

func (h *History[S]) replay() (state S, err error) {
	for _, e := range h.events {
		if err := h.definition.Replay(&state, e.Type, e.Payload); err != nil {
			return state, fmt.Errorf("%s, in the history as %s, cannot be decoded: %w", e.Type, payloadText(e.Payload), err)
		}
	}
	return state, nil
}

// Reload returns a state as restored from a snapshot of it.
func (h *History[S]) Reload(state S) (reloaded S, err error) {
	data, err := h.definition.Codec().Marshal(&state)
	if err == nil {
		err = h.definition.Codec().Unmarshal(data, &reloaded)
	}
	if err != nil {
		return reloaded, fmt.Errorf("the state does not survive its codec, so a snapshot would lose it: %w", err)
	}
	if lost := diff.Values(state, reloaded); lost != "" {
		return reloaded, fmt.Errorf("the state does not survive its codec, so a snapshot would lose a part of it (-before +after)\n%s", lost)
	}
	return reloaded, nil
}

// CheckSnapshot checks that the aggregate can be loaded from a snapshot before its latest events,
// and from one after them. Before is the state before them. An example of a fault is an Apply that
// writes to a map: it panics if the snapshot stored an empty map and the load returns nil.
func (h *History[S]) CheckSnapshot(before S, latest aggregate.Events[S]) error {
	reloaded, err := h.Reload(before)
	if err != nil {
		return err
	}
	h.definition.Apply(&reloaded, latest...)
	after, err := h.State()
	if err != nil {
		return err
	}
	if text := diff.Values(after, reloaded); text != "" {
		return fmt.Errorf("the events change a state from a snapshot in another way (-without +with the snapshot)\n%s", text)
	}
	_, err = h.Reload(after)
	return err
}

func payloadText(payload []byte) string {
	if !utf8.Valid(payload) || strings.ContainsRune(string(payload), 0) {
		return fmt.Sprintf("%x", payload)
	}
	return string(payload)
}
