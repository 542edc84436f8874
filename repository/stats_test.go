package repository_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestStatsCountWhatARepositoryDoes(t *testing.T) {
	eachInMemory(t, func(t *testing.T, _ *dynamotest.DB, s store) {
		rival := s.accounts(t, repository.Config{})
		repo := open(t, s.direct).accounts(t, repository.Config{Cache: 10, Snapshots: repository.Every(1)})
		counted := func(do func()) repository.Stats {
			t.Helper()
			before := repo.Stats()
			do()
			after := repo.Stats()
			return repository.Stats{
				Decisions: after.Decisions - before.Decisions, Refused: after.Refused - before.Refused,
				Commits: after.Commits - before.Commits, Events: after.Events - before.Events, Conflicts: after.Conflicts - before.Conflicts,
				Repeated: after.Repeated - before.Repeated, Unknown: after.Unknown - before.Unknown, Failed: after.Failed - before.Failed,
				Snapshots: after.Snapshots - before.Snapshots, SnapshotsLeftOut: after.SnapshotsLeftOut - before.SnapshotsLeftOut,
				Loads: after.Loads - before.Loads, CacheHits: after.CacheHits - before.CacheHits, CacheMisses: after.CacheMisses - before.CacheMisses,
			}
		}
		execute := func(want error, options ...repository.Option) func() {
			return func() {
				t.Helper()
				_, err := repo.Execute(t.Context(), "a", Deposit(1), options...)
				require.ErrorIs(t, err, want)
			}
		}
		assert.Equal(t, repository.Stats{Decisions: 1, Commits: 1, Events: 1, Snapshots: 1, Loads: 1, CacheMisses: 1}, counted(execute(nil)))
		assert.Equal(t, repository.Stats{Decisions: 1, Commits: 1, Events: 1, Snapshots: 1, CacheHits: 1}, counted(execute(nil)))

		endow(t, rival, "a", 1)
		conflict := counted(execute(nil))
		assert.EqualValues(t, 2, conflict.Decisions)
		assert.EqualValues(t, 1, conflict.Conflicts)
		assert.EqualValues(t, 1, conflict.Commits)

		assert.Positive(t, repo.Stats().CommitTime)

		refused := counted(func() {
			_, err := repo.Execute(t.Context(), "a", Withdraw(1000))
			require.ErrorIs(t, err, ErrInsufficientFunds)
		})
		assert.EqualValues(t, 1, refused.Refused)
		assert.Zero(t, refused.Commits)
	})
}

func TestStatsCountACommitThatFails(t *testing.T) {
	eachInMemoryInFakeTime(t, func(t *testing.T, db *dynamotest.DB, s store) {
		repo := s.open(t, journal.Config{RetryBudget: time.Millisecond}).accounts(t, repository.Config{})
		db.Inject(dynamotest.Conflict(), dynamotest.On("TransactWriteItems", "PutItem"), dynamotest.Times(1000))

		_, err := repo.Execute(t.Context(), "a", Deposit(1))

		require.ErrorIs(t, err, journal.ErrContended)
		assert.EqualValues(t, 1, repo.Stats().Failed)
	})
}

func TestADecisionOverSeveralAggregatesCountsForEachRepositoryAndHasAToken(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts, baskets, read := s.accounts(t, repository.Config{}), s.baskets(t, repository.Config{}), s.accounts(t, repository.Config{})
		var tx repository.Transaction
		a, b := accounts.AddTo(&tx, "a"), baskets.AddTo(&tx, "b")
		read.AddTo(&tx, "c")
		for range 2 { // the second is repeated
			require.NoError(t, tx.Execute(t.Context(), func() error {
				a.Append(Deposited{1}, Deposited{2})
				b.Append(Added{"pen", 1})
				return nil
			}, repository.WithCommandID("c")))
		}
		for n, stats := range []repository.Stats{accounts.Stats(), baskets.Stats()} {
			assert.EqualValues(t, 2, stats.Decisions)
			assert.EqualValues(t, 1, stats.Commits)
			assert.EqualValues(t, 2-n, stats.Events)
			assert.EqualValues(t, 1, stats.Repeated)
		}
		assert.Zero(t, read.Stats().Commits)
		assert.Equal(t, "account:a@2,basket:b@1", tx.Token().String())
		assert.Equal(t, "account:a@2", a.Aggregate().Token().String())
	})
}
