//go:build go1.25

package docs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAMailIsSentWhenTheServerIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app, accounts := bank(t, dynamotest.New(t))
		back := time.Now().Add(10 * time.Minute)
		var sent time.Time
		require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"balance"}},
			cqrs.NewGroupEventHandler(func(context.Context, *deposited) error {
				if time.Now().Before(back) {
					return errors.New("the mail server is down")
				}
				sent = time.Now()
				return nil
			})))
		stop, err := app.Start(t.Context())
		require.NoError(t, err)

		account, err := accounts.Execute(t.Context(), "42", Deposit(100))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // simulated
		defer cancel()
		require.NoError(t, app.Groups().WaitToken(ctx, "mails", account.Token()))
		assert.Less(t, sent.Sub(back), 31*time.Second, "the pauses between attempts are at most 30 seconds")
		require.NoError(t, stop())
	})
}

func TestAnEventOfAnotherProcessArrivesWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app, _ := bank(t, db)
		handled := make(chan time.Time, 1)
		require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"balance"}},
			cqrs.NewGroupEventHandler(func(context.Context, *deposited) error {
				handled <- time.Now()
				return nil
			})))
		stop, err := app.Start(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute) // the group is idle

		_, other := bank(t, db) // has no wake-ups to the first one
		_, err = other.Execute(t.Context(), "42", Deposit(100))
		require.NoError(t, err)
		committed := time.Now()
		assert.LessOrEqual(t, (<-handled).Sub(committed), 1100*time.Millisecond)
		require.NoError(t, stop())
	})
}

func TestAClientWaitsForFiveSecondsAndNotLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app, accounts := bank(t, dynamotest.New(t))
		require.NoError(t, app.HandleEvents(millrace.Group{Name: "slow", Topics: []string{"balance"}},
			cqrs.NewGroupEventHandler(func(ctx context.Context, _ *deposited) error {
				select {
				case <-time.After(time.Minute):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})))
		stop, err := app.Start(t.Context())
		require.NoError(t, err)
		account, err := accounts.Execute(t.Context(), "42", Deposit(100))
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, app.Groups().WaitToken(ctx, "slow", account.Token()), groups.ErrNotApplied)
		assert.Equal(t, 5*time.Second, time.Since(began))
		require.NoError(t, stop())
	})
}

func TestATermEndsAfterFourWeeksToTheSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app, accounts := bank(t, db)
		terms, err := millrace.Process(t.Context(), app, Terms, process.Config{}, "balance")
		require.NoError(t, err)
		stop, err := app.Start(t.Context())
		require.NoError(t, err)
		account, err := accounts.Execute(t.Context(), "42", Deposit(100))
		require.NoError(t, err)
		require.NoError(t, app.Groups().WaitToken(t.Context(), "term", account.Token()))

		db.Clock().Advance(28*24*time.Hour - time.Minute) // Sleep would poll for four weeks
		time.Sleep(55 * time.Second)
		synctest.Wait()
		open, err := terms.Repository().Load(t.Context(), "42")
		require.NoError(t, err)
		assert.False(t, open.State.Over)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		ended, err := terms.Repository().Load(t.Context(), "42")
		require.NoError(t, err)
		assert.True(t, ended.State.Over)
		require.NoError(t, stop())
	})
}

// bank opens an App and its repository on a database.
func bank(t *testing.T, db *dynamotest.DB) (*millrace.App, *repository.Repository[Account]) {
	t.Helper()
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{
		Journal: journal.Config{Layout: journal.Packed, Shards: 1, Now: db.Clock().Now},
	})
	require.NoError(t, err)
	accounts, err := millrace.Repository(app, Accounts, repository.Config{})
	require.NoError(t, err)
	return app, accounts
}
