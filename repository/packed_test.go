package repository_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// packedAccounts returns a repository on a packed journal, and a recording of its requests.
func packedAccounts(t *testing.T, config repository.Config) (*repository.Repository[Account], *dynamotest.Recording) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Packed, Shards: 4}))
	j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
	require.NoError(t, err)
	repo, err := repository.New(j, Accounts, config)
	require.NoError(t, err)
	return repo, db.Record()
}

func TestPackedACommandWithAnIDIsOnePutAsAnyOther(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{Cache: 10})
	for n := range 20 {
		calls.Reset()
		a, err := repo.Execute(t.Context(), "42", Deposit(1), repository.WithCommandID(fmt.Sprint("command ", n)))
		require.NoError(t, err)
		assert.Equal(t, n+1, a.State.Balance)
		if n > 0 {
			assert.Equal(t, map[string]int{"PutItem": 1}, calls.Counts())
			_, written := calls.Units()
			assert.InDelta(t, 2, written, 0)
		}
	}
	for n := range 20 {
		calls.Reset()
		a, err := repo.Execute(t.Context(), "42", Deposit(1), repository.WithCommandID(fmt.Sprint("command ", n)))
		require.NoError(t, err)
		assert.True(t, a.Repeated)
		assert.Equal(t, 20, a.State.Balance)
		_, written := calls.Units()
		assert.Zero(t, written)
	}
}

func TestPackedALoadIsOneReadByKeyAndOneQuery(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{Snapshots: repository.Every(10)})
	for n := range 25 {
		_, err := repo.Execute(t.Context(), "42", Deposit(1))
		require.NoError(t, err)
		calls.Reset()
		a, err := repo.Load(t.Context(), "42")
		require.NoError(t, err)
		assert.Equal(t, n+1, a.State.Balance)
		assert.Equal(t, map[string]int{"GetItem": 1, "Query": 1}, calls.Counts())
	}
}

func TestPackedAnEarlierVersionIsNoProofOfTheLast(t *testing.T) {
	t.Parallel()
	repo, _ := packedAccounts(t, repository.Config{})
	for range 3 {
		_, err := repo.Execute(t.Context(), "42", always(deposits(2)...))
		require.NoError(t, err)
	}
	for number := range uint64(6) {
		a, err := repo.LoadAtVersion(t.Context(), "42", number)
		require.NoError(t, err)
		_, err = repo.Save(t.Context(), a, Events{Deposited{1}})
		require.ErrorIs(t, err, journal.ErrConflict, number)
	}
	a, err := repo.LoadAtVersion(t.Context(), "42", 6)
	require.NoError(t, err)
	_, err = repo.Save(t.Context(), a, Events{Deposited{1}})
	require.NoError(t, err)
}

// After a load of an aggregate without events, its first command reads nothing again.
func TestPackedTheFirstCommandReadsNothingTwice(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{})
	first := map[string]int{"GetItem": 1, "Query": 1, "PutItem": 1}
	_, err := repo.Execute(t.Context(), "42", Deposit(1), repository.WithCommandID("pay"))
	require.NoError(t, err)
	assert.Equal(t, first, calls.Counts())

	look := func(id string) (bool, error) {
		a, err := repo.Execute(t.Context(), "43", always[Account](), repository.WithCommandID(id))
		return a.Repeated, err
	}
	for n := range 40 {
		calls.Reset()
		repeated, err := look(fmt.Sprint("look ", n))
		require.NoError(t, err)
		assert.False(t, repeated)
		if n == 0 {
			assert.Equal(t, first, calls.Counts())
		}
	}
	for n := range 40 {
		repeated, err := look(fmt.Sprint("look ", n))
		require.NoError(t, err)
		assert.True(t, repeated, n)
	}
	_, err = repo.Load(t.Context(), "43")
	require.ErrorIs(t, err, journal.ErrNotFound)
}
