package process_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

func torn(t *testing.T, test func(t *testing.T, db *dynamotest.DB, w *world)) {
	t.Helper()
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 2, Layout: layout}))
		require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
		j := testjournal.Open(t, db.Client(), journal.Config{})
		test(t, db, &world{t: t, client: db.Client(), j: j, now: time.UnixMilli(1_700_000_000_000)})
	})
}

func TestATimeoutThatShowsBeforeItsProcessIsNotIgnored(t *testing.T) {
	torn(t, func(t *testing.T, db *dynamotest.DB, w *world) {
		m, other := w.manager(w.client, w.config()), w.manager(w.client, w.config())
		// The item that is visible first is drawn at random.
		for n := range 20 {
			id := fmt.Sprint("o", n)
			placed := event(t.Context(), "placed "+id, id, OrderPlaced{Total: 5})
			testdb.WhileTorn(t, db, func() { require.NoError(t, m.Handle(placed)) }, func() {
				w.pass(deadline)
				_, err := other.Fire(t.Context())
				assert.NoError(t, err)
			})
			w.pass(2 * deadline)
			w.fire(other)
			saga, _ := w.saga(m, id)
			require.Equal(t, "too late", saga.Outcome)
		}
	})
}

func TestAnEventIsNotIgnoredForAStateWithoutTheStepBefore(t *testing.T) {
	torn(t, func(t *testing.T, db *dynamotest.DB, w *world) {
		m, other := w.manager(w.client, w.config()), w.manager(w.client, w.config())
		for n := range 20 {
			id := fmt.Sprint("o", n)
			placed := event(t.Context(), "placed "+id, id, OrderPlaced{Total: 5})
			testdb.WhileTorn(t, db, func() { require.NoError(t, m.Handle(placed)) }, func() {
				assert.NoError(t, other.Handle(event(t.Context(), "reserved "+id, id, CreditReserved{id})))
			})
			saga, _ := w.saga(m, id)
			require.Equal(t, "approved", saga.Outcome)
		}
	})
}

func TestTheAnswerToACommandFindsTheStepThatSentIt(t *testing.T) {
	torn(t, func(t *testing.T, db *dynamotest.DB, w *world) {
		config := w.config()
		config.RetryAfter = time.Minute
		config.Publisher = offline{}
		m := w.manager(w.client, config)
		config.Publisher = w
		config.Publisher = answering{w.manager(w.client, config)}
		other := w.manager(w.client, config)
		for n := range 20 {
			id := fmt.Sprint("o", n)
			placed := event(t.Context(), "placed "+id, id, OrderPlaced{Total: 5})
			testdb.WhileTorn(t, db, func() { require.ErrorIs(t, m.Handle(placed), errOffline) }, func() {
				if n%2 == 0 {
					assert.NoError(t, other.Handle(event(t.Context(), "placed "+id, id, OrderPlaced{Total: 5})))
					return
				}
				w.pass(2 * time.Minute)
				_, err := other.Fire(t.Context())
				assert.NoError(t, err)
			})
			w.pass(2 * time.Minute)
			w.fire(other)
			saga, _ := w.saga(m, id)
			require.Equal(t, "approved", saga.Outcome)
		}
	})
}

// offline is a broker that cannot be reached.
type offline struct{}

func (offline) Close() error                              { return nil }
func (offline) Publish(string, ...*message.Message) error { return errOffline }

// answering is a broker whose credit service answers at once.
type answering struct{ to *process.Manager[Saga] }

func (a answering) Close() error { return nil }

func (a answering) Publish(_ string, messages ...*message.Message) error {
	for _, msg := range messages {
		id := msg.Metadata.Get("aggregate_id")
		if err := a.to.Handle(event(context.Background(), "reserved "+id, id, CreditReserved{id})); err != nil {
			return err
		}
	}
	return nil
}
