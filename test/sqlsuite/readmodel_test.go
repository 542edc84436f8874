package sqlsuite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAReadModelInAnSQLDatabaseIsBuiltAnewWhileTheOldOneServes(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	require.NoError(t, readmodel.CreateTable(t.Context(), w.dynamo, ""))
	model, err := readmodel.Open(t.Context(), w.dynamo, readmodel.Config{
		Name: "sums", Journal: w.j, Topics: []string{topic}, Positions: w.store, Refresh: 20 * time.Millisecond, MaxAge: -1,
	})
	require.NoError(t, err)
	run, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() {
		ran <- model.Run(run, func(ctx context.Context, g readmodel.Generation) error {
			table := g.Table("sums")
			if _, err := w.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+" (id TEXT PRIMARY KEY, sum BIGINT)"); err != nil {
				return err
			}
			config := w.config(w.j, w.store)
			config.ConsumerGroup = g.Group()
			w.consume(config, w.react(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET sum = sum + excluded.sum", r.Aggregate.Value, e.Amount)
				return err
			})))
			<-ctx.Done()
			return nil
		})
	}()
	sum := func(g readmodel.Generation) (sum int) {
		require.NoError(t, w.db.QueryRowContext(t.Context(), "SELECT sum FROM "+g.Table("sums")+" WHERE id = 'x'").Scan(&sum))
		return sum
	}
	operator := groups.New(w.j, groups.WithPositions(w.store))
	first, err := model.Serving(t.Context())
	require.NoError(t, err)
	w.write("x", 0, Deposited{1}, Deposited{2}, Deposited{4})
	eventually(t, "the first one is applied", func() bool {
		err := operator.WaitApplied(t.Context(), first.Group(), x, 3)
		return !errors.Is(err, groups.ErrNoGroup)
	})
	assert.Equal(t, 7, sum(first))

	second, err := model.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, model.CatchUp(t.Context(), second, nil))
	require.NoError(t, model.Switch(t.Context(), second))
	serving, err := model.Serving(t.Context())
	require.NoError(t, err)
	assert.Equal(t, second, serving)
	assert.Equal(t, 7, sum(serving), fmt.Sprint("its own table, ", serving.Table("sums")))
	stop()
	require.ErrorIs(t, <-ran, context.Canceled)
}
