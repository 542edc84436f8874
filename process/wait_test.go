package process_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
)

func TestACallerWaitsUntilAProcessHasEnded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	proxy := dynamotest.NewProxy(t, w.client)
	m := w.manager(w.client, w.config())
	j := testjournal.Open(t, proxy.Client(testdb.Once), w.j.Config())
	waiting, err := process.New(j, w.client, definition, w.config())
	require.NoError(t, err)
	throttled := proxy.Inject(dynamotest.Throttle(), dynamotest.Times(3))
	type result struct {
		saga repository.Aggregate[Saga]
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		saga, err := waiting.WaitEnded(t.Context(), "o1")
		ended <- result{saga, err}
	}()
	for _, e := range []func() error{
		func() error { return m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})) },
		func() error { return m.Handle(event(t.Context(), "e2", "account-9", CreditReserved{Order: "o1"})) },
	} {
		select {
		case r := <-ended:
			require.Fail(t, "it has not ended", "%v", r)
		default:
		}
		require.NoError(t, e())
	}
	r := await.Receive(t, ended, "it must return")
	require.NoError(t, r.err)
	assert.Equal(t, "approved", r.saga.State.Outcome)
	assert.EqualValues(t, 3, r.saga.Version)
	assert.Positive(t, throttled.Fired())
}

func TestAWaitForAProcessEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	for _, id := range []string{"o1", "o2"} { // o2 has not begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := m.WaitEnded(ctx, id)
		require.ErrorIs(t, err, process.ErrNotEnded, id)
		require.ErrorIs(t, err, context.Canceled, id)
	}
}

func TestALoadThatHangsIsRepeated(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, waiting, proxy := endedProcess(t)
		hung := proxy.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }), dynamotest.Times(2))
		_, err := waiting.WaitEnded(t.Context(), "o1")
		require.NoError(t, err)
		assert.Equal(t, 2, hung.Fired())
	})
}

// In the handler of an event of the process, a load may wait for the transaction of the event.
func TestALoadThatMeetsTransactionsIsRepeated(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w, waiting, proxy := endedProcess(t)
		// For longer than RetryBudget.
		met := proxy.Inject(dynamotest.Conflict(), dynamotest.On("TransactGetItems"), dynamotest.Times(50))
		ctx := context.WithValue(t.Context(), handled.Key{}, handled.Event{
			// The event does not exist yet.
			Table: w.j.Config().Tables.Journal, Aggregate: aggregate.ID{Type: "saga", Value: "o1"}, Number: 4,
		})
		_, err := waiting.WaitEnded(ctx, "o1")
		require.NoError(t, err)
		assert.Equal(t, 50, met.Fired())
	})
}

// endedProcess returns a world whose process o1 has ended, and a manager that loads processes
// through a proxy.
func endedProcess(t *testing.T) (*world, *process.Manager[Saga], *dynamotest.Proxy) {
	t.Helper()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	require.NoError(t, m.Handle(event(t.Context(), "e2", "account-9", CreditReserved{Order: "o1"})))
	proxy := dynamotest.NewProxy(t, w.client)
	j := testjournal.Open(t, proxy.Client(testdb.Once), w.j.Config())
	waiting, err := process.New(j, w.client, definition, w.config())
	require.NoError(t, err)
	return w, waiting, proxy
}

func TestAProcessThatNeverEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	endless := process.Define(aggregate.Define[Saga]("endless", Begun{}),
		process.On(func(e OrderPlaced, _ process.Input) string { return "o1" },
			func(Saga, OrderPlaced, process.Input) (process.Step[Saga], error) { return process.Step[Saga]{}, nil }).Starts())
	m, err := process.New(w.j, w.client, endless, process.Config{})
	require.NoError(t, err)
	_, err = m.WaitEnded(t.Context(), "o1")
	require.ErrorAs(t, err, new(*process.ConfigError))
}

func TestAWaitForAProcessThatWasDeletedSaysSo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	require.NoError(t, m.Repository().Delete(t.Context(), "o1", 1, journal.RemoveOptions{}))
	_, err := m.WaitEnded(t.Context(), "o1")
	require.ErrorAs(t, err, new(*journal.DeletedError))
}
