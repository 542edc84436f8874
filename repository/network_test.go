package repository_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// The next transaction, or the next few, fail. Nevertheless there is one commit in the end.
func TestACommitIsWrittenOnceWhateverHappensToItsRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault           dynamotest.Fault
		times, requests int
	}{
		"the reply is lost":                {dynamotest.LoseReply(), 1, 2},
		"the reply is lost three times":    {dynamotest.LoseReply(), 3, 4},
		"another transaction is under way": {dynamotest.Conflict(), 3, 4},
		"DynamoDB throttles":               {dynamotest.Throttle(), 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, s store) {
				repo := s.accounts(t, repository.Config{})
				mustExecute(t, repo, "42", Deposit(100))
				s.proxy.Inject(test.fault, dynamotest.On(s.commits()), dynamotest.Times(test.times))
				s.calls.Reset()

				decisions := 0
				a := mustExecute(t, repo, "42", func(Account) (aggregate.Events[Account], error) {
					decisions++
					return aggregate.Events[Account]{Withdrawn{10}, Withdrawn{20}}, nil
				})
				assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{70}, Version: 3}, bare(a))
				assert.Equal(t, 1, decisions)
				assert.Len(t, s.calls.Calls(s.commits()), test.requests)
				assert.Len(t, s.records(t, account("42")), 3)
			})
		})
	}
}

func TestACommitWhoseReplyWasLostIsRecognizedUnderALaterOne(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})
		s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On(s.commits()), dynamotest.Times(1))
		s.proxy.Inject(dynamotest.PauseReply(func(context.Context) {
			_, err := repo.Execute(context.Background(), "42", Deposit(1000))
			require.NoError(t, err)
		}), dynamotest.On(s.commits()), dynamotest.Times(1))

		a := mustExecute(t, repo, "42", Deposit(1))
		assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{1}, Version: 1}, bare(a))
		assert.Len(t, s.records(t, account("42")), 2)
	})
}

func TestAContextThatEndsInMidFlightLeavesTheOutcomeToBeResolved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   func(func(context.Context)) dynamotest.Fault
		written bool
	}{
		"before the request arrives": {dynamotest.Pause, false},
		"before the reply arrives":   {dynamotest.PauseReply, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			repo := s.accounts(t, repository.Config{})
			mustExecute(t, repo, "42", Deposit(100))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.proxy.Inject(test.fault(func(context.Context) { cancel() }), dynamotest.On("TransactWriteItems"))

			decisions := 0
			a, err := repo.Execute(ctx, "42", func(Account) (aggregate.Events[Account], error) {
				decisions++
				return deposits(3), nil
			})
			var unknown *journal.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			require.ErrorIs(t, err, context.Canceled)
			assert.Zero(t, a)
			assert.Equal(t, 1, decisions, "it must not be tried again")

			written, err := s.journal.Resolve(t.Context(), unknown)
			require.NoError(t, err)
			assert.Equal(t, test.written, written)
			records := s.records(t, account("42"))
			assert.Equal(t, test.written, len(records) == 4, "%d events", len(records))
		})
	}
}

func TestNothingIsSentOnceTheContextHasEnded(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	a := mustExecute(t, repo, "42", Deposit(100))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.calls.Reset()

	same, err := repo.Save(ctx, a, Events{Deposited{1}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
	assert.Equal(t, a, same)
	_, err = repo.Load(ctx, "42")
	require.ErrorIs(t, err, context.Canceled)
	_, err = repo.Execute(ctx, "42", Deposit(1))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, s.calls.Calls("TransactWriteItems"))
}

func TestThrottlingThatDoesNotEndIsAnErrorAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t)
		j := testjournal.Open(t, s.client, journal.Config{RetryBudget: time.Nanosecond})
		repo := testjournal.Repository(t, j, Accounts, repository.Config{})
		throttled := s.proxy.Inject(dynamotest.Throttle(), dynamotest.On("TransactWriteItems"))
		_, err := repo.Execute(t.Context(), "42", Deposit(1))
		require.ErrorIs(t, err, journal.ErrThrottled)
		throttled.Remove()
		_, err = repo.Load(t.Context(), "42")
		assert.ErrorIs(t, err, journal.ErrNotFound)
	})
}
