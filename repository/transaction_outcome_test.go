package repository_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// If DynamoDB throttles a commit, the call must not read the versions, because that would start
// another retry budget.
func TestThrottlingEndsACallWithOneRetryBudgetThoughAParticipantMoves(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := dynamotest.New(t)
				direct := openOn(t, db, journal.Config{Layout: layout})
				rival := direct.accounts(t, repository.Config{})
				endow(t, rival, "a", 100)
				s := through(t, direct.direct).open(t, journal.Config{})
				s.proxy.Inject(dynamotest.Throttle(), dynamotest.On("TransactWriteItems"))
				var tx repository.Transaction
				accounts := s.accounts(t, repository.Config{})
				from, to := accounts.AddTo(&tx, "a"), accounts.AddTo(&tx, "b")
				decisions, begun := 0, time.Now()

				err := tx.Execute(t.Context(), func() error {
					decisions++
					endow(t, rival, "a", 1)
					return transfer(from, to, 10)()
				})

				require.ErrorIs(t, err, journal.ErrThrottled)
				assert.Equal(t, 1, decisions)
				assert.LessOrEqual(t, time.Since(begun), s.journal.Config().RetryBudget)
			})
		})
	}
}

func TestPackedAllPlaceholdersOfADecisionAreReplacedAtOnce(t *testing.T) {
	t.Parallel()
	s := setupIn(t, journal.Packed)
	accounts := s.accounts(t, repository.Config{})
	var tx repository.Transaction
	all := make([]*repository.Participant[Account], 20)
	for i := range all {
		id := fmt.Sprint(i)
		all[i] = accounts.AddTo(&tx, id)
		mustExecute(t, accounts, id, always[Account](), repository.WithCommandID("look"))
	}
	s.calls.Reset()

	err := tx.Execute(t.Context(), func() error {
		for _, p := range all {
			p.Append(Deposited{1})
		}
		return nil
	})

	require.NoError(t, err)
	assert.Equal(t, 2, s.calls.Counts()["TransactWriteItems"])
	again := mustExecute(t, accounts, "7", Withdraw(1), repository.WithCommandID("look"))
	assert.True(t, again.Repeated, "what they have noted stays")
}

func TestPackedPlaceholdersCountForTheSizeOfATransaction(t *testing.T) {
	t.Parallel()
	sizes := []int{381_000, 380_500, 379_000}
	if testdb.Race { // which takes ten times as long, and does not depend on the size
		sizes = sizes[:1]
	}
	for _, each := range sizes {
		s := openOn(t, dynamotest.New(t), journal.Config{Layout: journal.Packed, RetryBudget: time.Minute})
		accounts := s.accounts(t, repository.Config{})
		var tx repository.Transaction
		all := make([]*repository.Participant[Account], 11)
		for i := range all {
			for k := range 7 {
				mustExecute(t, accounts, fmt.Sprint(i), always[Account](), repository.WithCommandID(fmt.Sprint(k, strings.Repeat("x", 490))))
			}
			all[i] = accounts.AddTo(&tx, fmt.Sprint(i))
		}

		err := tx.Execute(t.Context(), func() error {
			for _, p := range all {
				p.Append(Noted{strings.Repeat("n", each)})
			}
			return nil
		})

		require.NoError(t, err, each)
	}
}

// A reader sees the guard of the command before an aggregate of the same transaction.
func TestARepeatedCommandReturnsAStateAfterIt(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		first, second := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		for n := range 30 {
			id, command := fmt.Sprint(n), repository.WithCommandID(fmt.Sprint(n))
			endow(t, first, id, 30)
			var again []repository.Aggregate[Account]
			tear := db.Inject(dynamotest.Tear(func(context.Context) {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
				defer cancel()
				var tx repository.Transaction
				p := second.AddTo(&tx, id)
				if tx.Execute(ctx, func() error { return errors.New("refused") }, command) == nil {
					again = append(again, p.Aggregate())
				}
			}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
			var tx repository.Transaction
			p := first.AddTo(&tx, id)
			require.NoError(t, tx.Execute(t.Context(), func() error { p.Append(Withdrawn{30}); return nil }, command))
			tear.Remove()
			for _, a := range again {
				assert.Equal(t, repository.Aggregate[Account]{ID: account(id), Version: 2, Repeated: true}, bare(a))
			}
		}
	})
}

func TestARepeatedCommandIsNotAnErrorHoweverItFailsNow(t *testing.T) {
	eachInMemory(t, func(t *testing.T, _ *dynamotest.DB, s store) {
		errTooLate := errors.New("too late")
		accounts := s.accounts(t, repository.Config{})
		endow(t, accounts, "a", 1)
		calls := 0
		options := []repository.Option{repository.WithCommandID("c"), repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
			if calls++; calls > 1 {
				return nil, errTooLate
			}
			return nil, nil
		})}
		var tx repository.Transaction
		p := accounts.AddTo(&tx, "a")
		for range 2 {
			require.NoError(t, tx.Execute(t.Context(), func() error { p.Append(Deposited{1}); return nil }, options...))
			assert.Equal(t, 2, p.Aggregate().State.Balance)
		}
		assert.True(t, p.Aggregate().Repeated)

		calls = 0
		for n := range 2 {
			a := mustExecute(t, accounts, "a", Deposit(1), options...)
			assert.Equal(t, n == 1, a.Repeated)
			assert.Equal(t, 3, a.State.Balance)
		}
	})
}

func TestWritesAndPoliciesOfADecisionSeeItsCommandID(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		var seen []string
		see := func(c repository.Commit) { seen = append(seen, c.CommandID) }
		endow(t, s.accounts(t, repository.Config{}), "a", 1)
		accounts := s.accounts(t, repository.Config{Snapshots: func(c repository.Commit) bool { see(c); return false }})
		var tx repository.Transaction
		p := accounts.AddTo(&tx, "a")

		err := tx.Execute(t.Context(), func() error { p.Append(Deposited{1}); return nil },
			repository.WithCommandID("c"), repository.WithWrites(func(c repository.Commit) ([]types.TransactWriteItem, error) { see(c); return nil, nil }))

		require.NoError(t, err)
		assert.Equal(t, []string{"c", "c"}, seen)
	})
}

func TestTheEventsOfAParticipantAreThoseOfItsRepository(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts, rival := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		var tx repository.Transaction
		p := accounts.AddTo(&tx, "p")
		accounts.AddTo(&tx, "q")
		p.ID = basket("b")
		decisions := 0

		err := tx.Execute(t.Context(), func() error {
			assert.Equal(t, account("p"), p.ID)
			if decisions++; decisions == 1 {
				endow(t, rival, "q", 1)
			}
			p.ID = account("z")
			p.Append(Deposited{100})
			return nil
		})

		require.NoError(t, err)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("p"), State: Account{100}, Version: 1}, bare(p.Aggregate()))
		assert.Len(t, s.records(t, account("p")), 1)
		assert.Equal(t, account("q"), tx.Results()[1].ID)
		p.Append(Withdrawn{1})
		assert.Equal(t, []string{"account.deposited.v1"}, tx.Results()[0].EventTypes, "what comes after the call does not count")
	})
}

func TestALoadThatEndsItsGoroutineEndsThatOfTheCaller(t *testing.T) {
	t.Parallel()
	_, s := onDynamotest(t)
	endow(t, s.accounts(t, repository.Config{}), "a", 10)
	ending := newRepository(t, s, Accounts.WithCodec(exiting{aggregate.JSON}), repository.Config{})
	ended, returned := make(chan struct{}), false
	go func() {
		defer close(ended)
		var tx repository.Transaction
		ending.AddTo(&tx, "a")
		_ = tx.Execute(context.Background(), func() error { return nil })
		returned = true
	}()
	<-ended
	assert.False(t, returned)
}

type exiting struct{ aggregate.Codec }

func (exiting) Unmarshal([]byte, any) error { runtime.Goexit(); return nil }
