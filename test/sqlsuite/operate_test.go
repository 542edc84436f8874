package sqlsuite_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestReconciliationContinuesAtThePositionsOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1}, Deposited{2})
	handle := w.react(w.noting())
	sub := w.consume(w.config(w.j, w.store), handle)
	eventually(t, "both take effect", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 2 })
	require.NoError(t, sub.Close()) // the cursor has passed them
	for _, statement := range []string{"DELETE FROM effects WHERE number = 2", "UPDATE " + sqlprojection.DefaultTable + " SET position = 1"} {
		_, err := w.db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}

	config := w.config(w.j, w.store)
	config.Timing.ReconcileInterval = 20 * time.Millisecond
	w.consume(config, handle)

	eventually(t, "the second comes again", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 2 })
	numbers, sum := w.effects("x")
	assert.Equal(t, upTo(2), numbers)
	assert.Equal(t, 3, sum)
}

func TestAResetGroupBeginsAnew(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1}, Deposited{2})
	handle := w.react(w.noting())
	sub := w.consume(w.config(w.j, w.store), handle)
	eventually(t, "both take effect", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 2 })
	require.NoError(t, sub.Close())
	_, err := w.db.ExecContext(t.Context(), "DELETE FROM effects")
	require.NoError(t, err)

	require.NoError(t, groups.Of(w.j, "totals", topic).Reset(t.Context(), subscriber.Beginning(), nil))
	w.consume(w.config(w.j, w.store), handle)

	eventually(t, "both take effect again", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 2 })
	numbers, _ := w.effects("x")
	assert.Equal(t, upTo(2), numbers)
}

func TestAnAggregateThatWasParkedGoesOnWhenItIsToldTo(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1}, Deposited{2})
	var healed atomic.Bool
	config := w.config(w.j, w.store)
	config.Failures = subscriber.Park(2)
	sub := w.consume(config, w.react(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
		if r.Number == 2 && !healed.Load() {
			return errNotYet
		}
		return w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount)
	})))
	eventually(t, "it is parked", func() bool { return sub.Stats().Parked == 1 })
	healed.Store(true)
	require.NoError(t, groups.New(w.j).Unpark(t.Context(), "totals", x))
	eventually(t, "it goes on", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 2 })
	numbers, _ := w.effects("x")
	assert.Equal(t, upTo(2), numbers)
}

func TestAnEventThatIsSkippedLeavesARecordAndTheOthersTakeEffectOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1}, Deposited{2}, Deposited{4})
	config := w.config(w.j, w.store)
	config.Failures = subscriber.Skip(2)
	sub := w.consume(config, w.react(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
		if err := w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount); err != nil || r.Number != 2 {
			return err
		}
		return errNotYet
	})))
	eventually(t, "those around it take effect", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 2 })
	_, sum := w.effects("x")
	assert.Equal(t, 5, sum)
	require.NoError(t, sub.Close())
	assert.EqualValues(t, 1, sub.Stats().Skipped)
	var skipped []uint64
	for e, err := range groups.Of(w.j, "totals", topic).Skipped(t.Context(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		skipped = append(skipped, e.Number)
		assert.Contains(t, e.Reason, errNotYet.Error())
	}
	assert.Equal(t, []uint64{2}, skipped)

	w.consume(config, w.react(w.noting()))
	w.write("x", 3, Deposited{8})
	eventually(t, "later ones take effect", func() bool { numbers, _ := w.effects("x"); return len(numbers) == 3 })
	_, sum = w.effects("x")
	assert.Equal(t, 13, sum, "what was skipped does not come again")
}

func TestAQueryWaitsUntilItsOwnWriteHasTakenEffect(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		operator := groups.New(w.j, groups.WithPositions(w.store))
		w.consume(w.config(w.j, w.store), w.react(w.noting()))
		eventually(t, "the group exists", func() bool {
			g, err := operator.Of("totals", topic).Status(t.Context())
			return err == nil && g.ExternalPositions
		})
		for n := range 5 {
			w.write("x", n, Deposited{1})
			require.NoError(t, operator.WaitApplied(t.Context(), "totals", x, uint64(n+1)))
			numbers, _ := w.effects("x")
			require.Equal(t, upTo(n+1), numbers)
		}
		lag, err := operator.Of("totals", topic).Lag(t.Context(), groups.LagOptions{})
		require.NoError(t, err)
		assert.Zero(t, lag.Events)
		applied, err := operator.Position(t.Context(), "totals", account("nobody"))
		require.NoError(t, err)
		assert.Zero(t, applied)
		require.ErrorIs(t, groups.New(w.j).WaitApplied(t.Context(), "totals", x, 1), groups.ErrExternalPositions)
	})
}

func TestAParkedEventIsSkippedByItsPositionInTheDatabase(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1}, Deposited{2}, Deposited{4})
	config := w.config(w.j, w.store)
	config.Failures = subscriber.Park(1)
	operator := groups.New(w.j, groups.WithPositions(w.store))
	sub := w.consume(config, w.react(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
		if r.Number == 2 {
			return errNotYet
		}
		return w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount)
	})))
	eventually(t, "it is parked", func() bool { return sub.Stats().Parked == 1 })
	require.ErrorIs(t, operator.Skip(t.Context(), "totals", x, 2), groups.ErrExternalPositions)

	_, err := w.db.ExecContext(t.Context(), "UPDATE "+sqlprojection.DefaultTable+" SET position = 2"+
		" WHERE consumer_group = 'totals' AND generation = 0 AND aggregate_type = 'account' AND aggregate_id = 'x'")
	require.NoError(t, err)
	require.NoError(t, operator.Unpark(t.Context(), "totals", x))

	require.NoError(t, operator.WaitApplied(t.Context(), "totals", x, 3))
	numbers, sum := w.effects("x")
	assert.Equal(t, []uint64{1, 3}, numbers)
	assert.Equal(t, 5, sum)
}
