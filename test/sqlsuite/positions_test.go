package sqlsuite_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
)

var (
	group = subscriber.GroupKey{Name: "totals"}
	x     = account("x")
)

// claim returns the position and whether there is one.
func (w *world) claim(g subscriber.GroupKey, id aggregate.ID, epoch uint64) (uint64, bool) {
	w.t.Helper()
	position, found, err := w.store.Claim(w.t.Context(), g, id, epoch)
	require.NoError(w.t, err)
	return position, found
}

func TestAPositionBelongsToTheNewestEpoch(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		advance := func(epoch, from, to uint64) error { return w.store.Advance(t.Context(), group, x, epoch, from, to) }
		require.ErrorIs(t, advance(1, 0, 5), subscriber.ErrFenced, "nobody has claimed it")
		position, found := w.claim(group, x, 1)
		assert.Zero(t, position)
		assert.False(t, found)
		require.NoError(t, advance(1, 0, 5))
		require.ErrorIs(t, advance(1, 0, 7), subscriber.ErrFenced, "it is not where the caller thinks")
		require.NoError(t, advance(1, 5, 6))
		require.NoError(t, advance(1, 5, 6), "the reply to the first was lost")
		position, _ = w.claim(group, x, 1)
		assert.EqualValues(t, 6, position, "the same epoch again")

		position, found = w.claim(group, x, 2)
		assert.EqualValues(t, 6, position)
		assert.True(t, found)
		require.ErrorIs(t, advance(1, 6, 7), subscriber.ErrFenced)
		_, _, err := w.store.Claim(t.Context(), group, x, 1)
		require.ErrorIs(t, err, subscriber.ErrFenced)
		require.NoError(t, advance(2, 6, 7), "the refused claim has changed nothing")
	})
}

func TestABaselineOfZeroIsAPosition(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.claim(group, x, 1)
		require.NoError(t, w.store.Advance(t.Context(), group, x, 1, 0, 0))
		_, found := w.claim(group, x, 1)
		assert.True(t, found)
		require.NoError(t, w.store.Advance(t.Context(), group, x, 1, 0, 1))
	})
}

func TestPositionsAreKeptApart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.claim(group, x, 1)
		require.NoError(t, w.store.Advance(t.Context(), group, x, 1, 0, 5))
		for _, other := range []struct {
			group subscriber.GroupKey
			id    aggregate.ID
		}{
			{subscriber.GroupKey{Name: "Totals"}, x},
			{subscriber.GroupKey{Name: "totals", Resets: 1}, x},
			{group, account("X")},
			{group, account("x ")},
			{group, aggregate.ID{Type: "Account", Value: "x"}},
			{group, account("é")},
			{group, account("e\u0301")},
			{group, account(strings.Repeat("y", aggregate.MaxIDBytes-len("account-")))},
			{group, account(`'; DROP TABLE effects; --`)},
		} {
			position, found := w.claim(other.group, other.id, 1)
			assert.Zero(t, position, other)
			assert.False(t, found, other)
			require.NoError(t, w.store.Advance(t.Context(), other.group, other.id, 1, 0, 1))
		}
		position, _ := w.claim(group, x, 1)
		assert.EqualValues(t, 5, position)
	})
}

func TestOneOfManyClaimsWins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		var claims sync.WaitGroup
		for epoch := range uint64(8) {
			claims.Add(1)
			go func() {
				defer claims.Done()
				_, _, err := w.store.Claim(t.Context(), group, x, epoch)
				if err != nil {
					assert.ErrorIs(t, err, subscriber.ErrFenced)
				}
			}()
		}
		claims.Wait()
		require.ErrorIs(t, w.store.Advance(t.Context(), group, x, 6, 0, 1), subscriber.ErrFenced)
		require.NoError(t, w.store.Advance(t.Context(), group, x, 7, 0, 1))
	})
}

func TestTheTableIsMadeOnceByAnyNumberOfProcesses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		store, err := sqlprojection.New(w.db, sqlprojection.Config{Dialect: d.dialect, Table: "another_table"})
		require.NoError(t, err)
		var makers sync.WaitGroup
		for range 8 {
			makers.Add(1)
			go func() {
				defer makers.Done()
				assert.NoError(t, store.CreateTable(t.Context()))
			}()
		}
		makers.Wait()
		_, _, err = store.Claim(t.Context(), group, x, 1)
		require.NoError(t, err)
	})
}

func TestATableThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		store, err := sqlprojection.New(w.db, sqlprojection.Config{Dialect: d.dialect, Table: "no_such_table"})
		require.NoError(t, err)
		_, _, err = store.Claim(t.Context(), group, x, 1)
		require.ErrorContains(t, err, "claim position on account-x")
		require.ErrorContains(t, err, "no_such_table")
		require.NotErrorIs(t, err, subscriber.ErrFenced)
		err = store.Advance(t.Context(), group, x, 1, 0, 1)
		require.ErrorContains(t, err, "advance position on account-x from 0 to 1")
		require.NotErrorIs(t, err, subscriber.ErrFenced)
	})
}
