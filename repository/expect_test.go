package repository_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestADecisionRunsOnlyOnTheExpectedVersion(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]repository.Config{"without a cache": {}, "with a cache": {Cache: 10}} {
		s := setup(t)
		repo := s.accounts(t, config)
		rival := s.accounts(t, repository.Config{})
		decisions := 0
		execute := func(version uint64, options ...repository.Option) (repository.Aggregate[Account], error) {
			return repo.Execute(t.Context(), "42", func(Account) (Events, error) {
				decisions++
				return deposits(1), nil
			}, append(options, repository.WithExpectedVersion(version))...)
		}
		conflicts := func(err error, expected, actual uint64) {
			t.Helper()
			var conflict *journal.ConflictError
			require.ErrorAs(t, err, &conflict, name)
			assert.Equal(t, journal.ConflictError{ID: account("42"), Expected: expected, Actual: actual}, *conflict, name)
			var attempts *repository.AttemptsError
			require.NotErrorAs(t, err, &attempts, name)
		}

		_, err := execute(1)
		conflicts(err, 1, 0)
		assert.Zero(t, decisions, name)
		a, err := execute(0)
		require.NoError(t, err, name)
		assert.EqualValues(t, 1, a.Version)
		_, err = execute(0)
		conflicts(err, 0, 1)
		assert.Equal(t, 1, decisions, name)

		mustExecute(t, rival, "42", Deposit(1)) // a cache does not know this event
		_, err = execute(1)
		conflicts(err, 1, 2)
		a, err = execute(2)
		require.NoError(t, err, name)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{3}, Version: 3}, bare(a), name)
	}
}

func TestAConflictAtTheExpectedVersionIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	mustExecute(t, repo, "42", Deposit(1))
	rival := open(t, s.direct).accounts(t, repository.Config{})
	s.calls.Reset()
	decisions := 0
	_, err := repo.Execute(t.Context(), "42", func(Account) (Events, error) {
		decisions++
		mustExecute(t, rival, "42", Deposit(1))
		return deposits(1), nil
	}, repository.WithExpectedVersion(1))
	var conflict *journal.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, journal.ConflictError{ID: account("42"), Expected: 1, Actual: 2}, *conflict)
	assert.Equal(t, 1, decisions)
	assert.Equal(t, map[string]int{"GetItem": 1, "TransactWriteItems": 1}, s.calls.Counts())
}
