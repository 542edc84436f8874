package repository_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// packedAccounts returns a repository on a packed journal, and a recording of its requests.
func packedAccounts(t *testing.T, config repository.Config) (*repository.Repository[Account], *dynamotest.Recording) {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 4})
	repo := testjournal.Repository(t, j, Accounts, config)
	return repo, db.Record()
}

func TestPackedACommandWithAnIDIsOnePutAsAnyOther(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{Cache: 10})
	for n := range 20 {
		calls.Reset()
		a := mustExecute(t, repo, "42", Deposit(1), repository.WithCommandID(fmt.Sprint("command ", n)))
		assert.Equal(t, n+1, a.State.Balance)
		if n > 0 {
			assert.Equal(t, map[string]int{"PutItem": 1}, calls.Counts())
			_, written := calls.Units()
			assert.InDelta(t, 2, written, 0)
		}
	}
	for n := range 20 {
		calls.Reset()
		a := mustExecute(t, repo, "42", Deposit(1), repository.WithCommandID(fmt.Sprint("command ", n)))
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
		mustExecute(t, repo, "42", Deposit(1))
		calls.Reset()
		a := mustLoad(t, repo, "42")
		assert.Equal(t, n+1, a.State.Balance)
		assert.Equal(t, map[string]int{"GetItem": 1, "Query": 1}, calls.Counts())
	}
}

func TestPackedAnEarlierVersionIsNoProofOfTheLast(t *testing.T) {
	t.Parallel()
	repo, _ := packedAccounts(t, repository.Config{})
	for range 3 {
		mustExecute(t, repo, "42", always(deposits(2)...))
	}
	for number := range uint64(6) {
		a := mustLoadAtVersion(t, repo, "42", number)
		_, err := repo.Save(t.Context(), a, Events{Deposited{1}})
		require.ErrorIs(t, err, journal.ErrConflict, number)
	}
	a := mustLoadAtVersion(t, repo, "42", 6)
	mustSave(t, repo, a, Events{Deposited{1}})
}

// After a load of an aggregate without events, its first command reads nothing again.
func TestPackedTheFirstCommandReadsNothingTwice(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{})
	first := map[string]int{"GetItem": 1, "Query": 1, "PutItem": 1}
	mustExecute(t, repo, "42", Deposit(1), repository.WithCommandID("pay"))
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
	_, err := repo.Load(t.Context(), "43")
	require.ErrorIs(t, err, journal.ErrNotFound)
}
