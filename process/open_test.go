package process_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// open returns the ids of open processes in order.
func (w *world) open(query process.BacklogQuery) (ids []string) {
	w.t.Helper()
	for p, err := range w.backlog().OpenProcesses(w.t.Context(), query) {
		require.NoError(w.t, err)
		ids = append(ids, p.Process.String())
	}
	slices.Sort(ids)
	return ids
}

func TestAProcessIsOpenFromItsFirstStepToItsLast(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	begin := func(order string) {
		require.NoError(t, m.Handle(event(t.Context(), "placed-"+order, order, OrderPlaced{Total: 5})))
	}
	begin("o1")
	begun := w.now
	w.pass(time.Minute)
	begin("o2")
	require.NoError(t, m.Handle(event(t.Context(), "touched", "o1", OrderTouched{})), "a step in between")

	assert.Equal(t, []string{"saga-o1", "saga-o2"}, w.open(process.BacklogQuery{}))
	assert.Equal(t, []string{"saga-o1", "saga-o2"}, w.open(process.BacklogQuery{Type: "saga"}))
	assert.Empty(t, w.open(process.BacklogQuery{Type: "sag"}))
	assert.Equal(t, []string{"saga-o2"}, w.open(process.BacklogQuery{Type: "saga", ID: "o2"}))
	assert.Equal(t, []string{"saga-o1"}, w.open(process.BacklogQuery{Before: w.now}), "older than a minute")
	assert.Empty(t, w.open(process.BacklogQuery{Type: "saga", ID: "o2", Before: w.now}))
	for p, err := range w.backlog().OpenProcesses(t.Context(), process.BacklogQuery{Type: "saga", ID: "o1"}) {
		require.NoError(t, err)
		assert.Equal(t, process.OpenProcess{Process: aggregate.ID{Type: "saga", Value: "o1"}, Begun: begun}, p)
	}
	for _, p := range w.pending(process.BacklogQuery{}) {
		assert.Equal(t, "credit", p.Timeout, "an open process is nothing that is left to do")
	}

	require.NoError(t, m.Handle(event(t.Context(), "e2", "c", CreditReserved{Order: "o1"})))
	assert.Equal(t, []string{"saga-o2"}, w.open(process.BacklogQuery{}))
	require.NoError(t, m.Handle(event(t.Context(), "placed-o1", "o1", OrderPlaced{Total: 5})), "it comes again")
	w.pass(deadline)
	w.fire(m)
	assert.Empty(t, w.open(process.BacklogQuery{}), "the timeout has ended it")
}

func TestAProcessThatEndsWithItsFirstStepIsNeverOpen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := process.Define(sagas, process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
		return process.Record(Begun{1}, Ended{"at once"}), nil
	}).Starts()).EndsWhen(func(s Saga) bool { return s.Outcome != "" })
	m, err := process.New(w.j, w.client, at, w.config())
	require.NoError(t, err)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{})))
	assert.Empty(t, w.open(process.BacklogQuery{}))
}

func TestAProcessWithoutAnEndIsNotListed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	endless := process.Define(sagas, process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
		return begun, nil
	}).Starts())
	m, err := process.New(w.j, w.client, endless, w.config())
	require.NoError(t, err)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{})))
	_, version := w.saga(m, "o1")
	assert.EqualValues(t, 1, version)
	assert.Empty(t, w.open(process.BacklogQuery{}))
}

// The reaction receives a copy. Changes to the copy have no effect.
func TestAReactionCannotListItsProcessAsOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	spoiling := process.Define(aggregate.Define[list]("list", entry{}),
		process.On(byID, func(l list, _ OrderPlaced, _ process.Input) (process.Step[list], error) {
			if l.Done != nil {
				l.Done["all"] = true
			}
			return process.Record(entry{"some"}), nil
		}).Starts(),
	).EndsWhen(func(l list) bool { return l.Done["all"] })
	m, err := process.New(w.j, w.client, spoiling, w.config())
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, m.Handle(event(t.Context(), fmt.Sprint("e", i), "o1", OrderPlaced{})))
	}
	assert.Equal(t, []string{"list-o1"}, w.open(process.BacklogQuery{}))
}

type (
	list  struct{ Done map[string]bool }
	entry struct{ Name string }
)

func (entry) EventType() string { return "entry" }
func (e entry) Apply(l *list) {
	if l.Done == nil {
		l.Done = map[string]bool{}
	}
	l.Done[e.Name] = true
}

func TestWhatWasDeletedIsTakenFromTheListByHand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	id := aggregate.ID{Type: "saga", Value: "o1"}
	_, version := w.saga(m, "o1")
	require.NoError(t, w.j.Delete(t.Context(), id, version, journal.RemoveOptions{}))
	assert.Equal(t, []string{"saga-o1"}, w.open(process.BacklogQuery{}))

	require.NoError(t, w.backlog().Unlist(t.Context(), id))
	assert.Empty(t, w.open(process.BacklogQuery{}))
	err := w.backlog().Unlist(t.Context(), id)
	require.ErrorIs(t, err, process.ErrNotPending)
	require.EqualError(t, err, "unlist process saga-o1: it is not listed as open")
}

func TestOpenProcessesOfABadQueryOrNoTable(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, err := range w.backlog().OpenProcesses(t.Context(), process.BacklogQuery{ID: "o1"}) {
		require.ErrorAs(t, err, new(*process.ConfigError))
	}
	missing := process.NewBacklog(w.client, "missing")
	for _, err := range missing.OpenProcesses(t.Context(), process.BacklogQuery{}) {
		require.ErrorIs(t, err, journal.ErrTableMissing)
	}
	require.ErrorIs(t, missing.Unlist(t.Context(), aggregate.ID{Type: "saga", Value: "o1"}), journal.ErrTableMissing)
}
