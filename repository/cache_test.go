package repository_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestExecuteWithAWarmCacheIsOneRequest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()

	a := mustExecute(t, repo, "42", Deposit(1))
	assert.Equal(t, 2, a.State.Balance)
	assert.Equal(t, map[string]int{"TransactWriteItems": 1}, s.calls.Counts())
}

func TestLoadWithAWarmCacheReadsTheVersionAndWhatIsNew(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10, Snapshots: repository.Never})
	mustExecute(t, repo, "42", always(deposits(50)...))
	s.calls.Reset()

	a := mustLoad(t, repo, "42")
	assert.Equal(t, 50, a.State.Balance)
	assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts())

	mustExecute(t, open(t, s.client).accounts(t, repository.Config{}), "42", always(deposits(2)...))
	s.calls.Reset()
	a = mustLoad(t, repo, "42")
	assert.Equal(t, 52, a.State.Balance)
	assert.Equal(t, map[string]int{"GetItem": 1, "BatchGetItem": 1}, s.calls.Counts())
}

func TestADecisionOnAnOldStateIsMadeAgainOnTheNewOne(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(5))
	rival := open(t, s.client).accounts(t, repository.Config{})
	mustExecute(t, rival, "42", Deposit(5))

	s.calls.Reset()
	a := mustExecute(t, repo, "42", Withdraw(4))
	assert.Equal(t, 6, a.State.Balance)
	assert.Equal(t, map[string]int{"TransactWriteItems": 2, "GetItem": 1}, s.calls.Counts(),
		"a conflict, the event that it tells of, and the commit")

	mustExecute(t, rival, "42", Deposit(5))
	a, err := repo.Execute(t.Context(), "42", Withdraw(11))
	require.NoError(t, err, "what is kept would refuse, what is stored does not")
	assert.Equal(t, 0, a.State.Balance)

	mustExecute(t, rival, "42", Deposit(5))
	a = mustExecute(t, repo, "42", func(a Account) (aggregate.Events[Account], error) {
		if a.Balance == 0 {
			return nil, nil
		}
		return aggregate.Events[Account]{Withdrawn{a.Balance}}, nil
	})
	assert.EqualValues(t, 7, a.Version, "what is kept would have no events, what is stored does")
	assert.Equal(t, 0, a.State.Balance)
}

func TestAWriterWhoLosesToAnotherOfTheSameRepositoryReadsNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()

	first := true
	a := mustExecute(t, repo, "42", func(Account) (aggregate.Events[Account], error) {
		if first {
			first = false
			// another writer, during this decision
			mustExecute(t, repo, "42", Deposit(1))
		}
		return deposits(1), nil
	})
	assert.Equal(t, 3, a.State.Balance)
	assert.Equal(t, map[string]int{"TransactWriteItems": 3}, s.calls.Counts())
}

func TestARefusalOnWhatIsStoredIsFinal(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(5))
	s.calls.Reset()

	_, err := repo.Execute(t.Context(), "42", Withdraw(6))

	require.ErrorIs(t, err, ErrInsufficientFunds)
	assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts(), "the version is read before it is believed")
}

func TestADecisionIsNotMadeAgainOnTheVersionThatItSaw(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"a refusal": ErrInsufficientFunds, "no events": nil} {
		s := setup(t)
		repo := s.accounts(t, repository.Config{Cache: 10})
		mustExecute(t, repo, "42", Deposit(5))
		s.calls.Reset()
		decisions := 0

		_, err := repo.Execute(t.Context(), "42", func(Account) (Events, error) {
			decisions++
			return nil, refusal
		})

		require.ErrorIs(t, err, refusal, name)
		assert.Equal(t, 1, decisions, name)
		assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts(), name)
	}
}

func TestARefusalDoesNotCountWhereItsContextEndsBeforeWhatIsStoredIsRead(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(5))
	ctx, cancel := context.WithCancel(t.Context())

	_, err := repo.Execute(ctx, "42", func(Account) (aggregate.Events[Account], error) {
		cancel()
		return nil, ErrInsufficientFunds
	})

	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrInsufficientFunds)
}

func TestNobodyCanChangeWhatIsKept(t *testing.T) {
	t.Parallel()
	repo := setup(t).baskets(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "1", always[Basket](Added{"pear", 1}, &Labelled{[]string{"ripe"}}))
	vandal := func(b Basket) (aggregate.Events[Basket], error) {
		b.Items["pear"], b.Labels[0] = 99, "rotten"
		return nil, errors.New("refused")
	}
	_, err := repo.Execute(t.Context(), "1", vandal)
	require.Error(t, err)
	a := mustLoad(t, repo, "1")
	a.State.Items["pear"], a.State.Labels[0] = 99, "rotten"

	a = mustLoad(t, repo, "1")
	assert.Equal(t, Basket{Items: map[string]int{"pear": 1}, Labels: []string{"ripe"}}, a.State)
}

func TestAHistoryThatWasPutBackIsLoadedAnew(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", always(deposits(3)...))
	// other stands for a backup, in which the same aggregate has one event.
	other := setup(t)
	mustExecute(t, other.accounts(t, repository.Config{}), "42", Deposit(7))
	s.copyFrom(t, other, account("42"))

	a := mustLoad(t, repo, "42")
	assert.Equal(t, 7, a.State.Balance)
	a, err := repo.Execute(t.Context(), "42", Withdraw(7))
	require.ErrorContains(t, err, "exists although the head of its aggregate is at version 1", "event 2 is still there")
	assert.Zero(t, a)
}

func TestTheCacheForgetsTheAggregatesThatWereNotUsedForLongest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 2})
	for i := range 3 {
		mustExecute(t, repo, fmt.Sprint(i), Deposit(1))
	}
	s.calls.Reset()
	mustExecute(t, repo, "2", Deposit(1))
	assert.Empty(t, s.calls.Calls("GetItem"), "it is kept")
	mustExecute(t, repo, "0", Deposit(1))
	assert.Len(t, s.calls.Calls("GetItem"), 1, "it is not")
}

// Several repositories with caches change the same aggregates. Each state that one of them returns
// is equal to a replay.
func TestACacheNeverReturnsAStateThatDiffersFromAReplay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	replay := s.baskets(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	var writers sync.WaitGroup
	for w := range uint64(4) {
		repo := open(t, s.client).baskets(t, repository.Config{Cache: 2, Snapshots: repository.Every(7)})
		writers.Add(1)
		go func() {
			defer writers.Done()
			random := rand.New(rand.NewPCG(11, w))
			for range 60 {
				id := fmt.Sprint(random.IntN(3))
				var a repository.Aggregate[Basket]
				var err error
				switch item := fmt.Sprint(random.IntN(4)); random.IntN(4) {
				case 0:
					if a, err = repo.Load(t.Context(), id); errors.Is(err, journal.ErrNotFound) {
						continue
					}
				case 1:
					a, err = repo.Execute(t.Context(), id, func(b Basket) (aggregate.Events[Basket], error) {
						if b.Items[item] == 0 {
							return nil, nil
						}
						return aggregate.Events[Basket]{Removed{item}}, nil
					})
				default:
					a, err = repo.Execute(t.Context(), id, always[Basket](Added{item, random.IntN(5)}))
				}
				if !assert.NoError(t, err) {
					return
				}
				if a.Version == 0 {
					continue // there was nothing to remove
				}
				then, err := replay.LoadAtVersion(t.Context(), id, a.Version)
				if !assert.NoError(t, err) || !assert.Equal(t, then.State, a.State, "aggregate %s at version %d", id, a.Version) {
					return
				}
			}
		}()
	}
	writers.Wait()
}

func TestAnErrorThatFollowsFromAnOldStateIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := setup(t)
	drain := func(a Account) (events aggregate.Events[Account], err error) {
		for range a.Balance {
			events = append(events, Withdrawn{1})
		}
		return events, nil
	}
	fromTwoOn := func(c repository.Commit) ([]types.TransactWriteItem, error) {
		if c.Before < 2 {
			return nil, errors.New("too early")
		}
		return nil, nil
	}
	for name, test := range map[string]struct {
		rival, decide aggregate.Decision[Account]
		options       []repository.Option
		want          int
	}{
		"more events than a commit may have": {Withdraw(140), drain, nil, 0},
		"an event that cannot be stored": {Withdraw(140), func(a Account) (aggregate.Events[Account], error) {
			return aggregate.Events[Account]{Noted{strings.Repeat("x", a.Balance*4<<10)}}, nil
		}, nil, 10},
		"writes that cannot be made yet": {Deposit(1), Deposit(1), []repository.Option{repository.WithWrites(fromTwoOn)}, 152},
	} {
		repo := s.accounts(t, repository.Config{Cache: 10})
		mustExecute(t, repo, name, Deposit(150))
		mustExecute(t, open(t, s.client).accounts(t, repository.Config{}), name, test.rival)

		a, err := repo.Execute(t.Context(), name, test.decide, test.options...)

		require.NoError(t, err, name)
		assert.Equal(t, test.want, a.State.Balance, name)
	}
}

func TestAnErrorOfTheLatestStateStands(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()
	full, asked := errors.New("no room in the outbox"), 0

	_, err := repo.Execute(t.Context(), "42", Deposit(1), repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
		asked++
		return nil, full
	}))

	require.ErrorIs(t, err, full)
	assert.Equal(t, 1, asked)
	assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts(), "the version is read, and is the one that is kept")
}

func TestADecisionWithoutEventsIsRememberedUnderTheVersionThatIsKept(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", Deposit(1))
	ifEmpty := func(a Account) (aggregate.Events[Account], error) {
		if a.Balance > 0 {
			return nil, nil
		}
		return deposits(1), nil
	}
	s.calls.Reset()
	mustExecute(t, repo, "42", ifEmpty, repository.WithCommandID("top up"))
	assert.Equal(t, map[string]int{"TransactWriteItems": 1}, s.calls.Counts())

	mustExecute(t, open(t, s.client).accounts(t, repository.Config{}), "42", Withdraw(1))
	a := mustExecute(t, repo, "42", ifEmpty, repository.WithCommandID("top up again"))
	assert.Equal(t, 1, a.State.Balance, "what is stored is empty, though what is kept is not")
}
