package stored

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// expected says what a fixture contains.
type expected struct {
	Version    string
	Layout     journal.Layout
	Written    time.Time // the time of the database when the fixture was complete
	Aggregates []*history
	// Handled has the numbers of the last events that groups have handled, by group and aggregate.
	// Parked, blocked and stopped events are not handled.
	Handled map[string]map[string]uint64
	// Unsent is the UUID of the command that could not be sent.
	Unsent string
}

// history is what was written to an aggregate.
type history struct {
	ID      aggregate.ID
	Version uint64
	From    uint64 // the number of the first event that was not truncated
	// Lost has the numbers for which LoadAtVersion has no state, because events were truncated.
	Lost     []uint64          `json:",omitempty"`
	States   []json.RawMessage // after event 1, 2 and so on; nil for letters
	Times    []time.Time       // at or after event 1, 2 and so on, and before the next
	Commands []string          // the ids of commands

	Deleted      bool `json:",omitempty"`
	KeyDestroyed bool `json:",omitempty"`
}

// of returns the history of an aggregate. It adds it if it is missing.
func (e *expected) of(id aggregate.ID) *history {
	for _, h := range e.Aggregates {
		if h.ID == id {
			return h
		}
	}
	h := &history{ID: id, From: 1}
	e.Aggregates = append(e.Aggregates, h)
	return h
}

// readable returns the aggregates of a type whose events can be read.
func (e *expected) readable(aggregateType string) (all []*history) {
	for _, h := range e.Aggregates {
		if h.ID.Type == aggregateType && !h.Deleted && !h.KeyDestroyed {
			all = append(all, h)
		}
	}
	return all
}

// undelivered returns the events that a group has not handled, by aggregate.
func (e *expected) undelivered(group string) map[string][]uint64 {
	missing := map[string][]uint64{}
	for _, topic := range topicsOf(group) {
		for _, h := range e.readable(topic) {
			id := h.ID.String()
			for number := max(h.From, e.Handled[group][id]+1); number <= h.Version; number++ {
				missing[id] = append(missing[id], number)
			}
		}
	}
	return missing
}

// add records that events were written to an aggregate. It computes the states without a database.
func add[S any](t *testing.T, h *history, at time.Time, events ...aggregate.Event[S]) {
	t.Helper()
	var state S
	if len(h.States) > 0 {
		require.NoError(t, json.Unmarshal(h.States[len(h.States)-1], &state))
	}
	for _, event := range events {
		event.Apply(&state)
		encoded, err := json.Marshal(state)
		require.NoError(t, err)
		h.States, h.Times = append(h.States, encoded), append(h.Times, at)
		h.Version++
	}
}

// saveExpected writes what a fixture contains.
func saveExpected(t *testing.T, path string, e *expected) {
	t.Helper()
	slices.SortFunc(e.Aggregates, func(a, b *history) int {
		return slices.Compare([]string{a.ID.Type, a.ID.Value}, []string{b.ID.Type, b.ID.Value})
	})
	encoded, err := json.Marshal(e)
	require.NoError(t, err)
	write(t, path, append(encoded, '\n'))
}

func loadExpected(t *testing.T, path string) *expected {
	t.Helper()
	e := &expected{}
	require.NoError(t, json.Unmarshal(read(t, path), e))
	return e
}
