package sqlsuite_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

var splitAccounts = aggregate.Define[struct{}](topic, deposit{}).WithUpcasters(
	aggregate.Split("paid-twice", func(old PaidTwice) ([]deposit, error) {
		return []deposit{{Deposited{old.First}}, {Deposited{old.Second}}}, nil
	}),
)

var totals = millrace.Group{Name: "totals", Topics: []string{topic}}

func TestAnAppProjectsASplitEventToSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		app, err := millrace.Open(t.Context(), w.client, millrace.Config{
			ExistingTables: true,
			Subscriber:     func(_ string, c *subscriber.Config) { c.Definitions = []aggregate.AnyDefinition{splitAccounts} },
		})
		require.NoError(t, err)
		_, err = millrace.Repository(app, splitAccounts, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.ProjectSQL(totals, w.store, w.noting()))
		query := app.Consistent("totals", consistency.Config{Timeout: patience})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		stop, err := app.Start(t.Context())
		require.NoError(t, err)
		w.write("x", 0, PaidTwice{1, 2}, Deposited{4})
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set(consistency.Header, aggregate.Token{{ID: account("x"), Version: 2}}.String())
		reply := httptest.NewRecorder()
		query.ServeHTTP(reply, request)
		require.Equal(t, http.StatusOK, reply.Code)
		require.NoError(t, stop())
		numbers, sum := w.effects("x")
		assert.Equal(t, []uint64{1, 1, 2}, numbers)
		assert.Equal(t, 7, sum)
	})
}

// The messages of a split event have no position, so a handler that commits positions would refuse
// them forever.
func TestAHandlerOfPositionsGetsNoSplitEvents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		app, err := millrace.Open(t.Context(), w.client, millrace.Config{ExistingTables: true})
		require.NoError(t, err)
		_, err = millrace.Repository(app, splitAccounts, repository.Config{})
		require.NoError(t, err)
		others := aggregate.Define[struct{}]("other", deposit{}).WithUpcasters(aggregate.Rename("paid", "deposited"), aggregate.Drop("noted"))
		_, err = millrace.Repository(app, others, repository.Config{})
		require.NoError(t, err)
		external := func(c *subscriber.Config) { c.Positions = w.store }
		var refused *millrace.ConfigError
		require.ErrorAs(t, app.Handle(millrace.Group{Name: "totals", Topics: []string{topic}, Subscriber: external}, w.react(w.noting())), &refused)
		assert.Contains(t, refused.Error(), "App.ProjectSQL")
		require.NoError(t, app.Handle(millrace.Group{Name: "totals", Topics: []string{"other"}, Subscriber: external}, w.react(w.noting())))

		config := w.config(w.j, w.store)
		config.Definitions = []aggregate.AnyDefinition{splitAccounts}
		sub, err := subscriber.NewSubscriber(config, nil)
		require.NoError(t, err, "it may be for other topics")
		var below *subscriber.ConfigError
		_, err = sub.Subscribe(t.Context(), topic)
		require.ErrorAs(t, err, &below)
		assert.Equal(t, "Definitions", below.Field)
	})
}

// The App knows the positions in the database, and observes each projection.
func TestAnAppOperatesItsSQLProjections(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		app, err := millrace.Open(t.Context(), w.client, millrace.Config{ExistingTables: true})
		require.NoError(t, err)
		_, err = millrace.Repository(app, splitAccounts, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.ProjectSQL(totals, w.store, w.noting()))
		require.NoError(t, app.ProjectSQL(millrace.Group{Name: "none", Topics: []string{topic}}, w.store,
			sqlprojection.On(func(context.Context, *sql.Tx, Noted, *journal.Record) error { return nil })))
		stop, err := app.Start(t.Context())
		require.NoError(t, err)
		w.write("x", 0, PaidTwice{1, 2}, Deposited{4})
		require.NoError(t, app.Settle(t.Context()))
		position, err := app.Groups().Position(t.Context(), "totals", account("x"))
		require.NoError(t, err)
		assert.EqualValues(t, 2, position)
		stats := map[string]projection.Stats{}
		for name, c := range app.Components() {
			if p, ok := c.(*sqlprojection.Projection); ok {
				stats[name] = p.Stats()
			}
		}
		assert.Equal(t, map[string]projection.Stats{"totals": {Applied: 2}, "none": {Ignored: 2}}, stats)
		require.NoError(t, stop())
	})
}

func TestAnAppRebuildsAReadModelInAnSQLDatabase(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	build := func(ctx context.Context, g readmodel.Generation) ([]sqlprojection.Reaction, error) {
		table := g.Table("sums")
		_, err := w.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+" (id TEXT PRIMARY KEY, sum BIGINT)")
		return []sqlprojection.Reaction{sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET sum = sum + excluded.sum", r.Aggregate.Value, e.Amount)
			return err
		})}, err
	}
	config := readmodel.Config{Name: "sums", Topics: []string{topic}, Refresh: 20 * time.Millisecond, MaxAge: -1}
	open := func() (*millrace.App, *readmodel.Model) {
		app, err := millrace.Open(t.Context(), w.dynamo, millrace.Config{Journal: w.j.Config()})
		require.NoError(t, err)
		_, err = millrace.Repository(app, splitAccounts, repository.Config{})
		require.NoError(t, err)
		_, err = app.SQLReadModel(t.Context(), config, nil, nil)
		require.ErrorAs(t, err, new(*millrace.ConfigError))
		model, err := app.SQLReadModel(t.Context(), config, w.store, build)
		require.NoError(t, err)
		return app, model
	}
	app, model := open()
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	w.write("x", 0, PaidTwice{1, 2}, Deposited{4})
	require.NoError(t, app.Settle(t.Context()))
	next, err := model.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, model.CatchUp(t.Context(), next, nil))
	require.NoError(t, model.Switch(t.Context(), next))
	w.write("x", 2, Deposited{8})
	require.NoError(t, app.Settle(t.Context()))
	generations, err := model.Generations(t.Context())
	require.NoError(t, err)
	require.Len(t, generations.Live, 2)
	for _, g := range generations.Live {
		var sum int
		require.NoError(t, w.db.QueryRowContext(t.Context(), "SELECT sum FROM "+g.Table("sums")+" WHERE id = 'x'").Scan(&sum))
		assert.Equal(t, 15, sum, g.String())
	}
	require.NoError(t, stop())

	other, _ := open() // it does not run, as a program of an operator
	for _, g := range generations.Live {
		position, err := other.Groups().Position(t.Context(), g.Group(), account("x"))
		require.NoError(t, err)
		assert.EqualValues(t, 3, position, g.String())
	}
}
