package repository_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// hideOutcome makes the outcome of the next commit unknown: the request or its reply is lost, and
// the read that would find out fails. The journal must not send the commit again.
func (s store) hideOutcome(request dynamotest.Fault) {
	s.proxy.Inject(request, dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.After(1), dynamotest.Times(1))
}

// impatient returns a store that sends each commit once. Its requests have no deadline, but
// repetitions of a command have one second, so tests of these need fake time.
func (s store) impatient(t *testing.T) store {
	t.Helper()
	s.client = s.proxy.Client(testdb.Once, testdb.Unhurried)
	return s.open(t, journal.Config{RetryBudget: time.Nanosecond})
}

func TestACommandIsRepeatedUntilItsOutcomeIsKnown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost      dynamotest.Fault
		decisions int
	}{
		"it was not written": {dynamotest.CutConnection(), 2},
		"it was written":     {dynamotest.LoseReply(), 1},
	} {
		for cached, config := range map[string]repository.Config{"without a cache": {}, "with a cache": {Cache: 10}} {
			t.Run(name+", "+cached, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					s := setup(t).impatient(t)
					repo := s.accounts(t, config)
					s.hideOutcome(test.lost)
					decisions := 0

					a := mustExecute(t, repo, "42", func(Account) (Events, error) {
						decisions++
						return deposits(3), nil
					}, repository.WithCommandID("pay"))
					assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{3}, Version: 3}, bare(a), "it is this call's commit")
					assert.Equal(t, test.decisions, decisions)
					assert.Len(t, s.records(t, a.ID), 3)
					calls := s.calls.Counts()
					assert.Equal(t, test.decisions, calls["TransactWriteItems"])
					assert.LessOrEqual(t, calls["GetItem"], 8)
				})
			})
		}
	}
}

func TestACommandReturnsTheStateAfterItsOwnCommitThoughOthersHaveWrittenSince(t *testing.T) {
	t.Parallel()
	for cached, config := range map[string]repository.Config{"without a cache": {}, "with a cache": {Cache: 10}} {
		s := setup(t)
		rival := open(t, s.direct).accounts(t, repository.Config{})
		s = s.impatient(t)
		s.hideOutcome(dynamotest.LoseReply())
		s.proxy.Inject(dynamotest.PauseReply(func(context.Context) {
			_, err := rival.Execute(context.Background(), "42", Deposit(1000))
			require.NoError(t, err)
		}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
		a := mustExecute(t, s.accounts(t, config), "42", Deposit(5), repository.WithCommandID("pay"))
		assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{5}, Version: 1}, bare(a), cached)
		assert.Len(t, s.records(t, a.ID), 2)
	}
}

// A read that fails says nothing about the command. Each single request after the commit fails
// once.
func TestAFailedReadDoesNotMakeTheOwnCommitOfACommandCountAsRepeated(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		for _, transaction := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a transaction: %t", layout, transaction), func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					for n, requests := 0, 1; n < requests; n++ {
						s := setupIn(t, layout)
						rival := open(t, s.direct).accounts(t, repository.Config{})
						s.client = s.proxy.Client(testdb.Once, testdb.Unhurried)
						s = s.open(t, journal.Config{RetryBudget: time.Second})
						pay := repository.WithCommandID("pay")
						s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
						s.proxy.Inject(dynamotest.PauseReply(func(context.Context) {
							_, err := rival.Execute(context.Background(), "42", Deposit(1000))
							require.NoError(t, err)
							// Nothing is answered until the journal does not know the outcome.
							written := time.Now()
							unknown := func(string, any) bool { return time.Since(written) >= time.Second }
							s.proxy.Inject(dynamotest.CutConnection(), dynamotest.Matching(func(string, any) bool { return !unknown("", nil) }))
							s.proxy.Inject(dynamotest.CutConnection(), dynamotest.Matching(unknown), dynamotest.After(n), dynamotest.Times(1))
							s.calls.Reset()
						}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
						accounts := s.accounts(t, repository.Config{})
						var a repository.Aggregate[Account]
						var err error
						if transaction {
							var tx repository.Transaction
							p := accounts.AddTo(&tx, "42")
							err = tx.Execute(t.Context(), func() error { p.Append(Deposited{5}); return nil }, pay)
							a = p.Aggregate()
						} else {
							a, err = accounts.Execute(t.Context(), "42", Deposit(5), pay)
						}
						if errors.Is(err, journal.ErrOutcomeUnknown) {
							n-- // the pauses were so long that nothing was read after the cut
							continue
						}
						require.NoError(t, err)
						assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{5}, Version: 1}, bare(a), "request %d", n)
						requests = len(s.calls.Calls())
					}
				})
			})
		}
	}
}

// The request of the first run arrives after the second run has decided. The commit of the second
// decision was not written, so its results must not reach the caller.
func TestACommandIsRepeatedWhereAnEarlierRunWasWritten(t *testing.T) {
	t.Parallel()
	s := setup(t).impatient(t)
	late := s.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	decisions := 0
	a := mustExecute(t, s.accounts(t, repository.Config{}), "42", func(Account) (Events, error) {
		if decisions++; decisions == 2 {
			require.Equal(t, 1, late.Arrive())
		}
		return Events{Deposited{decisions}}, nil
	}, repository.WithCommandID("pay"))
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{1}, Version: 1, Repeated: true}, bare(a))
	assert.Len(t, s.records(t, a.ID), 1)
}

// The request of the first run arrives when the second run cannot load.
func TestACommandIsNotRepeatedWhereTheLaterRunDidNotDecide(t *testing.T) {
	t.Parallel()
	s := setup(t).impatient(t)
	late := s.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	arrived := s.proxy.Inject(dynamotest.Pause(func(context.Context) { late.Arrive() }), dynamotest.On("GetItem", "TransactGetItems"), dynamotest.After(4), dynamotest.Times(1))
	s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem", "TransactGetItems"), dynamotest.After(4), dynamotest.Times(1))
	decisions := 0
	a := mustExecute(t, s.accounts(t, repository.Config{}), "42", func(Account) (Events, error) {
		decisions++
		return Events{Deposited{5}}, nil
	}, repository.WithCommandID("pay"))
	assert.Equal(t, 1, arrived.Fired())
	assert.Equal(t, 1, decisions)
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{5}, Version: 1}, bare(a))
}

// The request of the first run arrives before the second run loads. That run finds another version
// than the expected one, and does not decide.
func TestACommandForAVersionIsNotRepeatedWhereTheLaterRunDidNotDecide(t *testing.T) {
	t.Parallel()
	for _, transaction := range []bool{false, true} {
		s := setup(t).impatient(t)
		late := s.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
		arrived := s.proxy.Inject(dynamotest.Pause(func(context.Context) { late.Arrive() }), dynamotest.On("GetItem", "TransactGetItems"), dynamotest.After(4), dynamotest.Times(1))
		decisions := 0
		pay, version := repository.WithCommandID("pay"), repository.WithExpectedVersion(0)
		var a repository.Aggregate[Account]
		if transaction {
			var tx repository.Transaction
			p := s.accounts(t, repository.Config{}).AddTo(&tx, "42", version)
			require.NoError(t, tx.Execute(t.Context(), func() error {
				decisions++
				p.Append(Deposited{5})
				return nil
			}, pay))
			a = p.Aggregate()
		} else {
			a = mustExecute(t, s.accounts(t, repository.Config{}), "42", func(Account) (Events, error) {
				decisions++
				return Events{Deposited{5}}, nil
			}, pay, version)
		}
		assert.Equal(t, 1, arrived.Fired())
		assert.Equal(t, 1, decisions)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{5}, Version: 1}, bare(a), "in a transaction: %t", transaction)
	}
}

func TestACommandThatWasExecutedBeforeIsRepeatedAlsoAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	s := setup(t)
	mustExecute(t, s.accounts(t, repository.Config{}), "42", Deposit(1), repository.WithCommandID("pay"))
	s = s.impatient(t)
	s.hideOutcome(dynamotest.LoseReply())
	a := mustExecute(t, s.accounts(t, repository.Config{}), "42", Deposit(1), repository.WithCommandID("pay"))
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{1}, Version: 1, Repeated: true}, bare(a))
}

func TestACommandWithoutAnIDIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := setup(t).impatient(t)
	s.hideOutcome(dynamotest.LoseReply())
	decisions := 0
	_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", func(Account) (Events, error) {
		decisions++
		return deposits(1), nil
	})
	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	assert.Equal(t, 1, decisions)
}

func TestACommandIsNotRepeatedBeyondTheRetryBudget(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write    dynamotest.Fault
		read     int // number of reads that succeed
		repeated bool
	}{
		"nothing is answered":      {dynamotest.LoseReply(), 1, true},
		"no write ever gets there": {dynamotest.CutConnection(), 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				s := setup(t).open(t, journal.Config{RetryBudget: 5 * time.Second})
				repo := s.accounts(t, repository.Config{})
				mustExecute(t, repo, "42", Deposit(1))
				s.calls.Reset()
				writes := s.proxy.Inject(test.write, dynamotest.On("TransactWriteItems"))
				reads := s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.After(test.read))
				start := time.Now()

				_, err := repo.Execute(t.Context(), "42", Deposit(5), repository.WithCommandID("pay"))

				var unknown *journal.OutcomeUnknownError
				require.ErrorAs(t, err, &unknown)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				budget := s.journal.Config().RetryBudget
				assert.Less(t, time.Since(start), 2*budget+2*time.Second, "one budget to send the commit, and one to execute the command again")
				assert.Less(t, s.calls.Counts()["TransactWriteItems"]+s.calls.Counts()["GetItem"], 200)

				writes.Remove()
				reads.Remove()
				a := mustExecute(t, repo, "42", Deposit(5), repository.WithCommandID("pay"))
				want := repository.Aggregate[Account]{ID: account("42"), State: Account{6}, Version: 2, Repeated: test.repeated}
				assert.Equal(t, want, bare(a))
			})
		})
	}
}

// The first commit arrives when all repetitions have failed. The error of the call is about the
// last of them.
func TestAnOutcomeThatIsStillUnknownCanBeResolvedWhicheverCommitWasWritten(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t).impatient(t)
		repo := s.accounts(t, repository.Config{})
		late := s.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
		cut := s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("TransactWriteItems"), dynamotest.After(1))
		_, err := repo.Execute(t.Context(), "42", Deposit(5), repository.WithCommandID("pay"))
		var unknown *journal.OutcomeUnknownError
		require.ErrorAs(t, err, &unknown)
		written, err := s.journal.Resolve(t.Context(), unknown)
		require.NoError(t, err)
		require.False(t, written)

		cut.Remove()
		require.Equal(t, 1, late.Arrive())
		written, err = s.journal.Resolve(t.Context(), unknown)
		require.NoError(t, err)
		assert.True(t, written)
		a := mustExecute(t, repo, "42", Deposit(5), repository.WithCommandID("pay"))
		assert.True(t, a.Repeated)
		assert.Len(t, s.records(t, a.ID), 1)
	})
}

func TestARefusalStandsOnceTheCommitCanNotBeWrittenAnyMore(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t)
		mustExecute(t, s.accounts(t, repository.Config{}), "42", Deposit(5))
		rival := s.accounts(t, repository.Config{})
		s = s.impatient(t)
		s.hideOutcome(dynamotest.CutConnection())
		decisions := 0
		_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", func(a Account) (Events, error) {
			if decisions++; decisions == 2 {
				mustExecute(t, rival, "42", Withdraw(5))
			}
			if a.Balance < 5 {
				return nil, ErrInsufficientFunds
			}
			return Events{Withdrawn{5}}, nil
		}, repository.WithCommandID("pay"))
		require.ErrorIs(t, err, ErrInsufficientFunds)
		assert.Equal(t, 3, decisions)
		assert.Len(t, s.records(t, account("42")), 2)
	})
}

func TestACommandWithoutEventsReturnsTheStateOfNowOnceItsOutcomeIsKnown(t *testing.T) {
	t.Parallel()
	s := setup(t)
	rival := s.accounts(t, repository.Config{})
	s = s.impatient(t)
	late := s.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	decisions := 0

	a := mustExecute(t, s.accounts(t, repository.Config{}), "42", func(Account) (Events, error) {
		if decisions++; decisions == 1 {
			return nil, nil
		}
		require.Equal(t, 1, late.Arrive())
		mustExecute(t, rival, "42", Deposit(10))
		return deposits(1000), nil // more events than a commit can have
	}, repository.WithCommandID("nothing"))
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{10}, Version: 1, Repeated: true}, bare(a))
	assert.Equal(t, 2, decisions)
}

// A request may take long to arrive. Only a later version proves that it will not be written.
func TestARefusalDoesNotHideAnOutcomeThatIsStillOpen(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t).impatient(t)
		mustExecute(t, s.accounts(t, repository.Config{}), "42", Deposit(1))
		s.hideOutcome(dynamotest.CutConnection())
		decisions := 0
		_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", func(Account) (Events, error) {
			if decisions++; decisions == 1 {
				return deposits(1), nil
			}
			return nil, ErrInsufficientFunds
		}, repository.WithCommandID("pay"))
		require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
		assert.NotErrorIs(t, err, ErrInsufficientFunds)
	})
}

// The repetitions have a context of their own, whose end says nothing about the command.
func TestTheEndOfTheRetryBudgetIsNotTheErrorOfACommand(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t)
		rival := s.accounts(t, repository.Config{})
		s = s.impatient(t)
		s.hideOutcome(dynamotest.CutConnection())
		decisions := 0
		_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", func(Account) (Events, error) {
			if decisions++; decisions == 2 {
				// After this the first commit cannot be written any more.
				mustExecute(t, rival, "42", Deposit(10))
				time.Sleep(2 * time.Second)
			}
			return deposits(1), nil
		}, repository.WithCommandID("pay"))
		require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 2, decisions)
	})
}

func TestACommandIsNotRepeatedOnceTheContextHasEnded(t *testing.T) {
	t.Parallel()
	s := setup(t).impatient(t)
	s.hideOutcome(dynamotest.CutConnection())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	decisions := 0
	_, err := s.accounts(t, repository.Config{}).Execute(ctx, "42", func(Account) (Events, error) {
		if decisions++; decisions == 2 {
			cancel()
		}
		return deposits(1), nil
	}, repository.WithCommandID("pay"))
	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 2, decisions)
}

// The error of a decision is only the decision's, even if it reports an unknown outcome.
func TestAnUnknownOutcomeOfTheDecisionsOwnIsItsError(t *testing.T) {
	t.Parallel()
	s := setup(t)
	given, decisions := &journal.OutcomeUnknownError{ID: account("other")}, 0
	_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", func(Account) (aggregate.Events[Account], error) {
		decisions++
		return nil, given
	}, repository.WithCommandID("pay"))
	require.ErrorIs(t, err, error(given))
	assert.Equal(t, 1, decisions)
}

func TestWhatAnUnknownCommandDidIsResolvedByAnyOfItsCommits(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t).open(t, journal.Config{RetryBudget: time.Nanosecond})
		s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
		// The head can be read. All other requests hang until the caller gives up.
		hanging := s.proxy.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }),
			dynamotest.Table("journal"), dynamotest.After(1))

		began := time.Now()
		_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", Deposit(5), repository.WithCommandID("pay"))

		assert.LessOrEqual(t, time.Since(began), 2*time.Second, "a second to look for the commit, and one for the repetition")
		hanging.Remove()
		var unknown *journal.OutcomeUnknownError
		require.ErrorAs(t, err, &unknown)
		require.Len(t, s.records(t, account("42")), 1, "the first attempt was written")
		executed, err := s.journal.Resolve(t.Context(), unknown)
		require.NoError(t, err)
		assert.True(t, executed)
	})
}

func TestACommandThatWasWrittenIsNeverReportedAsThrottled(t *testing.T) {
	t.Parallel()
	s := setup(t).impatient(t)
	s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	// The head can be read, but events and guards cannot.
	throttled := s.proxy.Inject(dynamotest.Throttle(), dynamotest.Table("journal"), dynamotest.After(1))

	_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", Deposit(5), repository.WithCommandID("pay"))

	throttled.Remove()
	require.Len(t, s.records(t, account("42")), 1)
	assert.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	assert.NotErrorIs(t, err, journal.ErrThrottled)
}
