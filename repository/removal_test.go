package repository_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestDeleteRemovesTheVersionThatWasDecidedOn(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		eachLayout(t, func(t *testing.T, s store) {
			repo := s.accounts(t, config)
			a := mustExecute(t, repo, "42", always(deposits(3)...))

			err := repo.Delete(t.Context(), "42", 2, journal.RemoveOptions{})
			var conflict *journal.ConflictError
			require.ErrorAs(t, err, &conflict, name)
			assert.Equal(t, journal.ConflictError{ID: account("42"), Expected: 2, Actual: 3}, *conflict)
			loaded := mustLoad(t, repo, "42")
			assert.Equal(t, bare(a), bare(loaded), name)

			removed := 0
			require.NoError(t, repo.Delete(t.Context(), "42", 3, journal.RemoveOptions{Progress: func(events int) { removed = events }}))
			assert.Equal(t, 3, removed, name)
			decisions := 0
			_, err = repo.Execute(t.Context(), "42", func(Account) (Events, error) {
				decisions++
				return deposits(1), nil
			})
			require.ErrorAs(t, err, new(*journal.DeletedError), name)
			assert.Zero(t, decisions, "the cache has forgotten it")
			_, err = repo.Load(t.Context(), "42")
			require.ErrorAs(t, err, new(*journal.DeletedError), name)
			_, err = repo.Save(t.Context(), a, deposits(1))
			require.ErrorAs(t, err, new(*journal.DeletedError), name)
			require.NoError(t, repo.Delete(t.Context(), "42", 3, journal.RemoveOptions{}), "it may be called again")
			require.ErrorIs(t, repo.Delete(t.Context(), "none", 0, journal.RemoveOptions{}), journal.ErrNotFound)
		})
	}
}

func TestTruncateRemovesWhatALoadDoesNotNeed(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		eachLayout(t, func(t *testing.T, s store) {
			repo := s.accounts(t, config)
			// The packed layout removes whole commits.
			for _, n := range []int{2, 1} {
				mustExecute(t, repo, "42", always(deposits(n)...))
			}
			require.NoError(t, repo.Truncate(t.Context(), "42", 3, journal.RemoveOptions{}))
			require.NoError(t, repo.Truncate(t.Context(), "42", 3, journal.RemoveOptions{}), "it may be called again")
			_, err := repo.LoadAtVersion(t.Context(), "42", 1)
			require.ErrorAs(t, err, new(*journal.TruncatedError), name)
			for _, reader := range []*repository.Repository[Account]{repo, s.accounts(t, repository.Config{})} {
				a, err := reader.Execute(t.Context(), "42", Deposit(1))
				require.NoError(t, err, name)
				assert.EqualValues(t, a.Version, a.State.Balance, name)
			}
		})
	}
}

func TestTruncateKeepsTheEventsThatThisRepositoryWouldReplay(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		writer := s.accounts(t, repository.Config{Snapshots: repository.Every(3)})
		for range 4 {
			mustExecute(t, writer, "42", Deposit(1))
		}
		require.ErrorIs(t, writer.Truncate(t.Context(), "42", 5, journal.RemoveOptions{}), journal.ErrNotCovered, "the snapshot is of event 3")
		for name, config := range map[string]repository.Config{
			"it ignores snapshots":          {IgnoreSnapshots: true},
			"a snapshot of another schema":  {SnapshotSchema: 1},
			"a snapshot that it can't read": {SnapshotCodec: refusingSnapshots{}},
		} {
			repo := s.accounts(t, config)
			require.ErrorIs(t, repo.Truncate(t.Context(), "42", 4, journal.RemoveOptions{}), journal.ErrNotCovered, name)
			a, err := repo.Load(t.Context(), "42")
			require.NoError(t, err, name)
			assert.Equal(t, 4, a.State.Balance, name)
		}
		never := s.accounts(t, repository.Config{Snapshots: repository.Never})
		require.NoError(t, never.Truncate(t.Context(), "42", 4, journal.RemoveOptions{}), "it reads the snapshot that the writer has stored")
	})
}

func TestIDsThatCannotBeKeysAreNotRemoved(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})
		require.ErrorAs(t, repo.Delete(t.Context(), "", 0, journal.RemoveOptions{}), new(*aggregate.InvalidIDError))
		require.ErrorAs(t, repo.Truncate(t.Context(), "", 1, journal.RemoveOptions{}), new(*aggregate.InvalidIDError))
		require.ErrorIs(t, repo.Truncate(t.Context(), "none", 1, journal.RemoveOptions{}), journal.ErrNotFound)
	})
}
