package crud_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/crud"
)

const (
	accounts = 20
	balance  = 100
)

func TestNoWithdrawalIsLostWhileReleasesMoveAccounts(t *testing.T) {
	t.Parallel()
	db := table(t)
	app, repo := open(t, "shop-")
	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	require.NoError(t, err)
	require.NoError(t, store.CreateTable(t.Context()))
	require.NoError(t, crud.Project(app, store))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	stays, moves := &crud.Service{DB: db, Accounts: repo}, &crud.Service{DB: db, Accounts: repo, Moving: true}

	var done [accounts]atomic.Int64
	var wg sync.WaitGroup
	for n := range accounts {
		for _, service := range []*crud.Service{stays, moves, stays} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 3 {
					if assert.NoError(t, service.Withdraw(t.Context(), id(n), 1)) {
						done[n].Add(1)
					}
				}
			}()
		}
	}
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			assert.NoError(t, stays.MoveAll(t.Context()))
		}()
	}
	wg.Wait()
	require.NoError(t, stays.MoveAll(t.Context()))

	eventually(t, func(ctx context.Context) bool {
		differ, err := crud.Differences(ctx, db, repo)
		return err == nil && len(differ) == 0
	})
	for n := range accounts {
		account, err := repo.Load(t.Context(), id(n))
		require.NoError(t, err)
		assert.EqualValues(t, balance-done[n].Load(), account.State.Balance)
	}
	var left int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM accounts WHERE kept_in <> 'journal'").Scan(&left))
	assert.Zero(t, left)
	require.ErrorIs(t, stays.Withdraw(t.Context(), id(0), 1000), crud.ErrNotEnough)
	require.NoError(t, stop())
}

func TestTheShadowShowsDifferences(t *testing.T) {
	t.Parallel()
	db := table(t)
	_, shadow := open(t, "shadow-")
	service := &crud.Service{DB: db, Shadow: shadow}
	require.NoError(t, crud.ImportAll(t.Context(), db, shadow))
	require.NoError(t, crud.ImportAll(t.Context(), db, shadow), "again")

	require.NoError(t, service.Withdraw(t.Context(), id(1), 30))
	require.ErrorIs(t, service.Withdraw(t.Context(), id(1), 80), crud.ErrNotEnough)
	differ, err := crud.Differences(t.Context(), db, shadow)
	require.NoError(t, err)
	assert.Empty(t, differ)

	_, err = db.ExecContext(t.Context(), "UPDATE accounts SET balance = balance + 1 WHERE id = $1", id(7))
	require.NoError(t, err)
	differ, err = crud.Differences(t.Context(), db, shadow)
	require.NoError(t, err)
	assert.Equal(t, []string{id(7)}, differ)
}

func table(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.ExecContext(t.Context(), crud.Schema)
	require.NoError(t, err)
	for n := range accounts {
		_, err = db.ExecContext(t.Context(), "INSERT INTO accounts (id, balance) VALUES ($1, $2)", id(n), balance)
		require.NoError(t, err)
	}
	return db
}

func open(t *testing.T, prefix string) (*millrace.App, *repository.Repository[crud.Account]) {
	t.Helper()
	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{
		Prefix: prefix, Journal: journal.Config{Layout: journal.Packed, Shards: 2},
	})
	require.NoError(t, err)
	repo, err := millrace.Repository(app, crud.Accounts, repository.Config{})
	require.NoError(t, err)
	return app, repo
}

func id(n int) string { return fmt.Sprintf("account-%02d", n) }

func eventually(t *testing.T, holds func(context.Context) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return holds(t.Context()) }, time.Minute, 20*time.Millisecond)
}
