package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

func TestStepsCostWhatTheirDocumentationSays(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		client := db.Client()
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
		require.NoError(t, process.CreateTable(t.Context(), client, ""))
		j := testjournal.Open(t, client, journal.Config{})
		w := &world{t: t, client: client, j: j, now: time.UnixMilli(1_700_000_000_000)}
		m := w.manager(client, w.config())
		cost := func(what string, read, write float64, do func()) {
			t.Helper()
			recording := db.Record()
			do()
			recording.Stop()
			gotRead, gotWrite := recording.Units()
			assert.InDelta(t, read, gotRead, 0.01, "%s: reads", what)
			assert.InDelta(t, write, gotWrite, 0.01, "%s: writes", what)
		}
		handle := func(uuid string, e interface{ EventType() string }) func() {
			return func() { require.NoError(t, m.Handle(event(t.Context(), uuid, "o1", e))) }
		}
		const (
			head, one, input = 2 + 1, 2 + 2, 2 // with the indexes of the journal's tables
			single, more     = head + one + input, one
			commands         = 2 + 1 + 1 + 1
			set, cancelled   = 2 + 1, 2 + 1
			lease, takenAway = 1 + 2, 2 + 1
			number           = 0.5 // number of queues, read once a minute
			listed, unlisted = 2, 2
			state, again     = 1, 2 // the second read is a transaction
		)
		cost("a step with commands and a timeout", 1, single+commands+set+listed, handle("e1", OrderPlaced{Total: 1}))
		w.pass(time.Second)
		cost("a timeout that is moved", 1, single+2+2, handle("e2", OrderTouched{}))
		cost("two events, commands, and a timeout that is cancelled", 1, single+more+commands+cancelled+unlisted, handle("e3", CreditReserved{Order: "o1"}))
		cost("what is ignored, as the process has ended", state+input, 0, handle("e4", OrderTouched{}))
		cost("what is ignored, as there is no process", state+again, 0, func() { require.NoError(t, m.Handle(event(t.Context(), "e4", "none", OrderTouched{}))) })
		cost("what has no reaction", 0, 0, handle("e5", Begun{}))
		cost("nothing is due, and the number of queues is read", 0.5+number, 0, func() { w.fire(m) })
		cost("nothing is due", 0.5, 0, func() { w.fire(m) })

		require.NoError(t, m.Handle(event(t.Context(), "e6", "o2", OrderPlaced{Total: 1})))
		w.pass(deadline)
		cost("a timeout that fires, with commands", 1+0.5+number, lease+takenAway+single+commands+unlisted, func() { assert.Equal(t, 1, w.fire(m)) })

		idle, err := process.New(j, client, process.Define(sagas,
			process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) { return begun.SetTimeout("credit", deadline), nil }).Starts(),
			process.OnTimeout("credit", func(Saga, process.Input) (step, error) { return step{}, nil }),
		), w.config())
		require.NoError(t, err)
		require.NoError(t, idle.Handle(event(t.Context(), "e9", "idle", OrderPlaced{Total: 1})))
		w.pass(deadline)
		cost("a timeout with nothing to do", 0.5+number+state+again+input, lease+takenAway-1, func() { assert.Equal(t, 1, w.fire(idle)) })

		w.setOffline(true)
		require.ErrorIs(t, m.Handle(event(t.Context(), "e6", "o3", OrderPlaced{Total: 1})), errOffline)
		w.pass(time.Minute)
		cost("an attempt that fails", 0.5+number+state+again, lease+1, func() { _, _ = m.Fire(t.Context()) })
		var stuck process.Pending
		cost("a look at all that is pending", 0.5, 0, func() { stuck = w.one(process.BacklogQuery{Before: w.now}) })
		cost("a look at what is due", number+0.5+1, 0, func() { assert.Len(t, w.due(w.now.Add(time.Minute), everything), 1) })
		cost("a look at what is pending of a process", 1, 0, func() { w.pending(process.BacklogQuery{Type: "saga", ID: "o3"}) })
		cost("a look at all that are open", 0.5, 0, func() { assert.Equal(t, []string{"saga-o3"}, w.open(process.BacklogQuery{})) })
		cost("a look whether one is open", 1, 0, func() { w.open(process.BacklogQuery{Type: "saga", ID: "o3"}) })
		cost("one is taken from the list", 0, 1, func() {
			require.NoError(t, w.backlog().Unlist(t.Context(), aggregate.ID{Type: "saga", Value: "o3"}))
		})
		cost("a retry", 0, lease, func() { require.NoError(t, w.backlog().Retry(t.Context(), stuck)) })
		cost("a drop", 0, 2, func() { require.NoError(t, w.backlog().Drop(t.Context(), stuck)) })

		w.setOffline(false)
		m = w.withQueues(client, 4)
		cost("the first step with more queues", 1+number, single+commands+set+listed+1, func() {
			require.NoError(t, m.Handle(event(t.Context(), "e7", "o4", OrderPlaced{Total: 1})))
		})
		cost("the first step of the next", 1, single+commands+set+listed, func() {
			require.NoError(t, m.Handle(event(t.Context(), "e8", "o5", OrderPlaced{Total: 1})))
		})
		cost("nothing is due in four queues", 4*0.5, 0, func() { w.fire(m) })
		m = w.withQueues(client, 4)
		cost("the first look of another", 4*0.5+number, 0, func() { w.fire(m) })
	})
}

func TestStepsInThePackedLayoutCostWhatTheirDocumentationSays(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	client := db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: journal.Packed}))
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	j := testjournal.Open(t, client, journal.Config{})
	w := &world{t: t, client: client, j: j, now: time.UnixMilli(1_700_000_000_000)}
	m := w.manager(client, w.config())
	cost := func(what string, read, write float64, uuid string, e interface{ EventType() string }) {
		t.Helper()
		recording := db.Record()
		require.NoError(t, m.Handle(event(t.Context(), uuid, "o1", e)))
		recording.Stop()
		gotRead, gotWrite := recording.Units()
		assert.InDelta(t, read, gotRead, 0.01, "%s: reads", what)
		assert.InDelta(t, write, gotWrite, 0.01, "%s: writes", what)
	}
	const commands, set, cancelled, listed, unlisted = 2 + 1 + 1 + 1, 3, 3, 2, 2
	cost("the first step", 4, 5+commands+set+listed, "e1", OrderPlaced{Total: 1})
	cost("the last step", 2, 4+commands+cancelled+unlisted, "e3", CreditReserved{Order: "o1"})
}
