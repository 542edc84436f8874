package repository_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestExecuteDecidesOnTheStateAndAppends(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	mustExecute(t, repo, "42", Deposit(100))

	a := mustExecute(t, repo, "42", Withdraw(30))
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{70}, Version: 2}, bare(a))

	a, err := repo.Execute(t.Context(), "42", Withdraw(71))
	var refused *repository.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, repository.RefusedError{ID: account("42"), Err: ErrInsufficientFunds}, *refused)
	require.EqualError(t, err, ErrInsufficientFunds.Error())
	assert.Zero(t, a)
}

func TestExecuteGivesANewAggregateTheZeroState(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.baskets(t, repository.Config{})
	a := mustExecute(t, repo, "new", func(b Basket) (aggregate.Events[Basket], error) {
		assert.Zero(t, b)
		return aggregate.Events[Basket]{Added{"pen", 1}}, nil
	})
	assert.Equal(t, repository.Aggregate[Basket]{ID: basket("new"), State: Basket{Items: map[string]int{"pen": 1}}, Version: 1}, bare(a))
}

func TestExecuteWithoutEventsWritesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	a := mustExecute(t, repo, "new", always[Account]())
	assert.Equal(t, repository.Aggregate[Account]{ID: account("new")}, bare(a))

	loaded := mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()
	a = mustExecute(t, repo, "42", always[Account]())
	assert.Equal(t, loaded, a)
	assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts())
}

// compete calls act just before each of the next n transactions of a store.
func compete(s store, n int, act func()) {
	acting := false
	s.proxy.Inject(dynamotest.Pause(func(context.Context) {
		if !acting && n > 0 { // act may use the same client
			acting = true
			act()
			acting = false
			n--
		}
	}), dynamotest.On("TransactWriteItems"))
}

// compete10 makes another writer deposit 10 before each of the next n transactions.
func compete10(t *testing.T, s store, n int, id string) {
	t.Helper()
	repo := s.accounts(t, repository.Config{})
	compete(s, n, func() {
		_, err := repo.Execute(context.Background(), id, Deposit(10))
		require.NoError(t, err)
	})
}

func TestExecuteLoadsAndDecidesAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	mustExecute(t, repo, "42", Deposit(1))
	compete10(t, s, 3, "42")

	var seen []int
	a := mustExecute(t, repo, "42", func(a Account) (aggregate.Events[Account], error) {
		seen = append(seen, a.Balance)
		return aggregate.Events[Account]{Deposited{a.Balance}}, nil
	})
	assert.Equal(t, []int{1, 11, 21, 31}, seen, "each attempt decides on the state of its time")
	assert.Equal(t, 62, a.State.Balance)
	assert.EqualValues(t, 5, a.Version)
	assert.Len(t, s.records(t, account("42")), 5)
}

func TestExecuteGivesUpAfterMaxAttempts(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{MaxAttempts: 3})
	compete10(t, s, 100, "42")

	attempts := 0
	a, err := repo.Execute(t.Context(), "42", func(Account) (aggregate.Events[Account], error) {
		attempts++
		return deposits(1), nil
	})
	var gaveUp *repository.AttemptsError
	require.ErrorAs(t, err, &gaveUp)
	assert.Equal(t, 3, gaveUp.Attempts)
	assert.Equal(t, 3, attempts)
	var conflict *journal.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, journal.ConflictError{ID: account("42"), Expected: 2, Actual: 3}, *conflict)
	assert.ErrorContains(t, err, "3 attempts")
	assert.Zero(t, a)
	assert.Len(t, s.records(t, account("42")), 3, "the competitor's")
}

func TestExecuteStopsWhenTheContextEndsBetweenAttempts(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{MaxAttempts: 1000})
	compete10(t, s, 1000, "42")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	attempts := 0
	s.proxy.Observe(func(c dynamotest.Call) {
		if c.Operation == "TransactWriteItems" && attempts == 2 && c.Err != nil {
			cancel()
		}
	})
	_, err := repo.Execute(ctx, "42", func(Account) (aggregate.Events[Account], error) {
		attempts++
		return deposits(1), nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
	assert.ErrorIs(t, err, journal.ErrConflict)
	assert.Equal(t, 2, attempts)
}

// A handler that acks refusals must not lose a command because the store was not reachable.
func TestAnErrorOfTheStoreIsNoRefusal(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	for name, reads := range map[string]int{"it cannot be loaded": 0, "the command cannot be read": 1} {
		fault := s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem", "TransactGetItems"), dynamotest.After(reads))
		_, err := repo.Execute(t.Context(), "42", Withdraw(1), repository.WithCommandID("c"))
		fault.Remove()
		require.Error(t, err, name)
		require.NotErrorAs(t, err, new(*repository.RefusedError), name)
		require.NotErrorIs(t, err, ErrInsufficientFunds, name)
	}
}

func TestExecuteTakesAConflictFromADecisionForARefusal(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	attempts, refusal := 0, &journal.ConflictError{ID: account("other")}
	_, err := repo.Execute(t.Context(), "42", func(Account) (aggregate.Events[Account], error) {
		attempts++
		return nil, refusal
	})
	var refused *repository.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, error(refusal), refused.Err)
	assert.Equal(t, 1, attempts)
}

func TestWritersThatRaceLeaveNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	const writers, commands = 2, 200
	eachLayout(t, func(t *testing.T, s store) {
		var all sync.WaitGroup
		for w := range writers {
			repo := open(t, s.client).accounts(t, repository.Config{MaxAttempts: 1000, Snapshots: repository.Every(10)})
			all.Add(1)
			go func() {
				defer all.Done()
				for n := range commands {
					_, err := repo.Execute(t.Context(), "42", func(a Account) (aggregate.Events[Account], error) {
						return aggregate.Events[Account]{Noted{fmt.Sprintf("%d/%d on %d", w, n, a.Balance)}, Deposited{1}}[:1+n%2], nil
					})
					if !assert.NoError(t, err) {
						return
					}
				}
			}()
		}
		all.Wait()

		// records checks the numbers. Each command is stored once, and was decided on the balance
		// after the events before it.
		records := s.records(t, account("42"))
		assert.Len(t, records, writers*commands*3/2)
		balance, last := 0, map[int]int{0: -1, 1: -1}
		for _, r := range records {
			event, err := Accounts.Decode(r.EventType, r.Payload)
			require.NoError(t, err)
			noted, ok := event.(Noted)
			if !ok {
				balance++
				continue
			}
			var w, n, saw int
			_, err = fmt.Sscanf(noted.Text, "%d/%d on %d", &w, &n, &saw)
			require.NoError(t, err)
			require.Equal(t, last[w]+1, n, "writer %d at event %d", w, r.Number)
			require.Equal(t, balance, saw, "writer %d at event %d", w, r.Number)
			last[w] = n
		}
		assert.Equal(t, map[int]int{0: commands - 1, 1: commands - 1}, last)
	})
}
