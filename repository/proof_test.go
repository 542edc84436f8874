package repository_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// sent is the expected version of a commit and its proof.
type sent struct {
	Expected uint64
	Proven   bool
}

// watch records the commits of a repository.
func watch[S any](repo *repository.Repository[S]) *[]sent {
	commits := &[]sent{}
	repo.Watch(func(c storage.Commit) { *commits = append(*commits, sent{c.Expected, c.Proven}) })
	return commits
}

// eachCache runs a test with an account of three events, which another process wrote.
func eachCache(t *testing.T, test func(t *testing.T, s store, repo *repository.Repository[Account], commits *[]sent)) {
	t.Helper()
	t.Parallel()
	for name, config := range map[string]repository.Config{
		"without a cache":             {},
		"with a cache":                {Cache: 10},
		"with a snapshot after each":  {Snapshots: repository.Every(1)},
		"with a cache and a snapshot": {Snapshots: repository.Every(1), Cache: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.deposits(t, 3)
			repo := s.accounts(t, config)
			test(t, s, repo, watch(repo))
		})
	}
}

// deposits makes commits of one event in another process.
func (s store) deposits(t *testing.T, commits int) {
	t.Helper()
	other := open(t, s.direct).accounts(t, repository.Config{})
	for range commits {
		mustExecute(t, other, "42", Deposit(1))
	}
}

func TestTheVersionOfALoadIsProven(t *testing.T) {
	eachCache(t, func(t *testing.T, _ store, repo *repository.Repository[Account], commits *[]sent) {
		a := mustLoad(t, repo, "42")
		mustSave(t, repo, a, Events{Deposited{1}})
		assert.Equal(t, []sent{{3, true}}, *commits)
	})
}

func TestTheVersionAfterACommitIsProven(t *testing.T) {
	eachCache(t, func(t *testing.T, _ store, repo *repository.Repository[Account], commits *[]sent) {
		a := mustExecute(t, repo, "42", Deposit(1))
		a = mustSave(t, repo, a, Events{Deposited{1}, Deposited{1}})
		mustSave(t, repo, a, Events{Deposited{1}})
		mustExecute(t, repo, "42", Deposit(1))
		assert.Equal(t, []sent{{3, true}, {4, true}, {6, true}, {7, true}}, *commits)
	})
}

// The first attempt uses the cached version, the next one the version in the conflict.
func TestTheVersionOfAConflictIsProven(t *testing.T) {
	eachCache(t, func(t *testing.T, s store, repo *repository.Repository[Account], commits *[]sent) {
		interfered := false
		mustExecute(t, repo, "42", func(Account) (Events, error) {
			if !interfered {
				interfered = true
				s.deposits(t, 1)
			}
			return Events{Deposited{1}}, nil
		})
		assert.Equal(t, []sent{{3, true}, {4, true}}, *commits)
	})
}

func TestTheVersionOfAnEarlierStateIsNotProvenEvenIfItIsTheLast(t *testing.T) {
	for name, load := range map[string]func(t *testing.T, repo *repository.Repository[Account]) (repository.Aggregate[Account], error){
		"LoadAtVersion": func(t *testing.T, repo *repository.Repository[Account]) (repository.Aggregate[Account], error) {
			t.Helper()
			return repo.LoadAtVersion(t.Context(), "42", 3)
		},
		"LoadAtTime": func(t *testing.T, repo *repository.Repository[Account]) (repository.Aggregate[Account], error) {
			t.Helper()
			return repo.LoadAtTime(t.Context(), "42", time.Now().Add(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachCache(t, func(t *testing.T, _ store, repo *repository.Repository[Account], commits *[]sent) {
				a, err := load(t, repo)
				require.NoError(t, err)
				a = mustSave(t, repo, a, Events{Deposited{1}})
				mustSave(t, repo, a, Events{Deposited{1}})
				assert.Equal(t, []sent{{3, false}, {4, true}}, *commits, "the receipt proves the second")
			})
		})
	}
}

func TestAVersionThatWasReadAgainIsProven(t *testing.T) {
	eachCache(t, func(t *testing.T, _ store, repo *repository.Repository[Account], commits *[]sent) {
		earlier := mustLoadAtVersion(t, repo, "42", 2)
		earlier.Version = 3
		mustSave(t, repo, earlier, Events{Deposited{1}})
		mustSave(t, repo, repository.Aggregate[Account]{ID: account("42"), Version: 4}, Events{Deposited{1}})
		assert.Equal(t, []sent{{3, true}, {4, true}}, *commits)
	})
}

func TestTheVersionOfAnEarlierStateWithMapsIsNotProven(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for range 2 {
		mustExecute(t, s.baskets(t, repository.Config{}), "1", always[Basket](Added{"apple", 1}))
	}
	repo := s.baskets(t, repository.Config{})
	commits := watch(repo)
	fromSnapshot := mustLoadAtVersion(t, repo, "1", 1)
	_, err := repo.Save(t.Context(), fromSnapshot, aggregate.Events[Basket]{Added{"apple", 1}})
	require.ErrorIs(t, err, journal.ErrConflict)
	replayed := mustLoadAtVersion(t, repo, "1", 2)
	mustSave(t, repo, replayed, aggregate.Events[Basket]{Added{"apple", 1}})
	assert.Equal(t, []sent{{1, false}, {2, false}}, *commits)
}

// A state with maps that the caller may have changed is read again before it becomes a snapshot.
func TestAVersionThatWasReadAgainForASnapshotIsProven(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for range 2 {
		mustExecute(t, s.baskets(t, repository.Config{Snapshots: repository.Never}), "1", always[Basket](Added{"apple", 1}))
	}
	repo := s.baskets(t, repository.Config{Snapshots: repository.Every(3)})
	commits := watch(repo)
	a := mustLoadAtVersion(t, repo, "1", 2)
	s.calls.Reset()

	mustSave(t, repo, a, aggregate.Events[Basket]{Added{"apple", 1}})
	require.NotZero(t, s.calls.Counts()["GetItem"], "the test is about a load within Save")
	assert.Equal(t, []sent{{2, true}}, *commits)
}

func TestVersion0IsProven(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	commits := watch(repo)
	mustExecute(t, repo, "new", Deposit(1))
	made, err := repo.NewAggregate("made")
	require.NoError(t, err)
	mustSave(t, repo, made, Events{Deposited{1}})
	before := mustLoadAtVersion(t, repo, "new", 0)
	_, err = repo.Save(t.Context(), before, Events{Deposited{1}})
	require.ErrorIs(t, err, journal.ErrConflict)
	assert.Equal(t, []sent{{0, true}, {0, true}, {0, true}}, *commits)
}

// The reply to the commit is lost, and other writers commit before the command is repeated.
func TestTheVersionAfterACommitThatWasResolvedLaterIsNotProven(t *testing.T) {
	t.Parallel()
	s := setup(t)
	rival := open(t, s.direct).accounts(t, repository.Config{})
	s = s.impatient(t)
	repo := s.accounts(t, repository.Config{})
	commits := watch(repo)
	s.hideOutcome(dynamotest.LoseReply())
	s.proxy.Inject(dynamotest.PauseReply(func(context.Context) {
		_, err := rival.Execute(context.Background(), "42", Deposit(1))
		assert.NoError(t, err)
	}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	a := mustExecute(t, repo, "42", Deposit(1), repository.WithCommandID("pay"))
	require.EqualValues(t, 1, a.Version)
	_, err := repo.Save(t.Context(), a, Events{Deposited{1}})
	require.ErrorIs(t, err, journal.ErrConflict)
	assert.Equal(t, []sent{{0, true}, {1, false}}, *commits)
}
