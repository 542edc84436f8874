package snippets

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	_ "modernc.org/sqlite" // the driver

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestTotalsAreInASQLDatabase(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "totals.db")+"?_pragma=busy_timeout(10000)")
	check(err)
	t.Cleanup(func() { check(db.Close()) })
	_, err = db.ExecContext(ctx, "CREATE TABLE accounts (id TEXT PRIMARY KEY, total INTEGER NOT NULL)")
	check(err)
	_, err = db.ExecContext(ctx, "INSERT INTO accounts VALUES ('alice', 0)")
	check(err)
	store := totals(ctx, db, b.j, b.router)
	feed := liveTotals(b.j, store)
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	<-feed.Running()
	changed, stop := feed.Watch("alice")
	defer stop()
	b.run(t)

	account := b.write(ctx, "alice")
	waitForTotal(ctx, b.j, store, account)
	var total int
	check(db.QueryRowContext(ctx, "SELECT total FROM accounts WHERE id = 'alice'").Scan(&total))
	assert.Equal(t, 70, total)
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the watcher was not notified")
	}
	check(feed.Close())
	check(<-ended)
}

func TestAnAppHasTotalsInASQLDatabase(t *testing.T) {
	t.Parallel()
	b := open(t)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "totals.db")+"?_pragma=busy_timeout(10000)")
	check(err)
	t.Cleanup(func() { check(db.Close()) })
	_, err = db.ExecContext(t.Context(), "CREATE TABLE accounts (id TEXT PRIMARY KEY, total INTEGER NOT NULL)")
	check(err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO accounts VALUES ('alice', 0)")
	check(err)
	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	check(err)
	check(store.CreateTable(t.Context()))
	app, err := millrace.Open(t.Context(), b.client, millrace.Config{Journal: b.j.Config()})
	check(err)
	totalsOfApp(app, store)
	model := totalsReadModel(t.Context(), app, db, store)
	stop, err := app.Start(t.Context())
	check(err)

	account := b.write(t.Context(), "alice")
	waitForTotal(t.Context(), b.j, store, account)
	check(app.Settle(t.Context()))

	serving, err := model.Serving(t.Context())
	check(err)
	check(stop())
	for _, table := range []string{"accounts", serving.Table("totals")} {
		var total int
		check(db.QueryRowContext(t.Context(), "SELECT total FROM "+table+" WHERE id = 'alice'").Scan(&total))
		assert.Equal(t, 100, total, table)
	}
}

func totalsOfApp(app *millrace.App, store *sqlprojection.Store) {
	check(app.ProjectSQL(millrace.Group{Name: "totals", Topics: []string{"account"}}, store,
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET total = total + $1 WHERE id = $2", e.Amount, r.Aggregate.Value)
			return err
		}),
	))
}

func totalsReadModel(ctx context.Context, app *millrace.App, db *sql.DB, store *sqlprojection.Store) *readmodel.Model {
	model, err := app.SQLReadModel(ctx, readmodel.Config{Name: "totals", Topics: []string{"account"}}, store,
		func(ctx context.Context, g readmodel.Generation) ([]sqlprojection.Reaction, error) {
			table := g.Table("totals")
			_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+" (id TEXT PRIMARY KEY, total INTEGER NOT NULL)")
			return []sqlprojection.Reaction{
				sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
					_, err := tx.ExecContext(ctx, "INSERT INTO "+table+` VALUES ($1, $2)
						ON CONFLICT (id) DO UPDATE SET total = total + excluded.total`, r.Aggregate.Value, e.Amount)
					return err
				}),
			}, err
		})
	check(err)
	return model
}

func totals(ctx context.Context, db *sql.DB, j *journal.Journal, router *message.Router) *sqlprojection.Store {
	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	check(err)
	check(store.CreateTable(ctx)) // or add store.Schema() to your migrations

	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "totals",
		Positions: store, // required: the positions of the group are in the SQL database
	}, nil)
	check(err)
	handle, err := store.React( // one reaction for each event type; other events are ignored
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET total = total + $1 WHERE id = $2", e.Amount, r.Aggregate.Value)
			return err
		}),
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Withdrawn, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET total = total - $1 WHERE id = $2", e.Amount, r.Aggregate.Value)
			return err
		}),
	)
	check(err)
	router.AddConsumerHandler("totals", "account", sub, handle)
	return store
}

// waitForTotal waits for the last event of an account, which Execute has returned.
func waitForTotal(ctx context.Context, j *journal.Journal, store *sqlprojection.Store, account repository.Aggregate[Account]) {
	g := groups.New(j, groups.WithPositions(store))
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// groups.ErrNotApplied at the deadline.
	check(g.WaitApplied(waiting, "totals", account.ID, account.Version))
}
