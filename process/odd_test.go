package process_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
)

func TestAProcessWhoseKeyWasDestroyedBlocksNobody(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{7}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	j := testjournal.Open(t, client, journal.Config{Encodings: []journal.Encoding{secret}})
	w := &world{t: t, client: client, j: j, now: time.UnixMilli(1_700_000_000_000)}
	m := w.manager(client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{5})))
	require.NoError(t, secret.Destroy(t.Context(), aggregate.ID{Type: "saga", Value: "o1"}))

	require.NoError(t, m.Handle(event(t.Context(), "e2", "credit", CreditReserved{Order: "o1"})))
	assert.EqualValues(t, 1, m.Stats().Ignored)
	w.pass(deadline)
	w.fire(m)
	assert.Empty(t, w.pending(process.BacklogQuery{}), "its timeout is gone")
}

func TestAnEventIDOfAnyLengthIsHandledOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	for _, id := range []string{strings.Repeat("a", 600), strings.Repeat("a", 601)} {
		for range 2 {
			require.NoError(t, m.Handle(event(t.Context(), id, "o1", OrderPlaced{Total: 5})))
		}
	}
	assert.EqualValues(t, 2, m.Stats().Steps)
	assert.EqualValues(t, 2, m.Stats().Repeated)
}

func TestATimeoutInTheDistantFutureDoesNotFire(t *testing.T) {
	t.Parallel()
	w := setup(t)
	distant := process.Define(sagas,
		process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
			return begun.SetTimeoutAt("credit", time.Unix(1<<55, 0)), nil
		}).Starts(),
		process.OnTimeout("credit", func(Saga, process.Input) (step, error) { return begun, nil }),
	)
	m, err := process.New(w.j, w.client, distant, w.config())
	require.NoError(t, err)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	assert.Zero(t, w.fire(m))
	assert.Equal(t, 9999, w.one(process.BacklogQuery{}).At.UTC().Year())
}

// Servers whose clocks differ agree on when a timeout is due.
func TestTimeoutsGoByTheClockOfTheJournal(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.j = testjournal.Open(t, w.client, journal.Config{Now: w.config().Now})
	config := w.config()
	config.Now = nil
	m := w.manager(w.client, config)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{5})))

	assert.Zero(t, w.fire(m))
	w.pass(deadline)

	assert.Equal(t, 1, w.fire(m))
}

// A manager that only polls learns that its clock is wrong.
func TestALookForWhatIsDueCorrectsTheClock(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
		j := testjournal.Open(t, db.Client(), journal.Config{})
		w := &world{t: t, client: db.Client(), j: j}
		config := w.config()
		config.Now = nil
		m := w.manager(db.Client(), config)
		require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{5})))

		db.Clock().Advance(deadline + time.Minute) // so this machine's clock is behind
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.ErrorIs(t, m.Run(ctx), context.DeadlineExceeded)

		assert.EqualValues(t, 1, m.Stats().Fired)
	})
}
