package repository_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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

// transfer decides on a payment from one account to another.
func transfer(from, to *repository.Participant[Account], amount int) func() error {
	return func() error {
		if from.State.Balance < amount {
			return ErrInsufficientFunds
		}
		from.Append(Withdrawn{amount})
		to.Append(Deposited{amount})
		return nil
	}
}

func endow(t *testing.T, repo *repository.Repository[Account], id string, amount int) {
	t.Helper()
	mustExecute(t, repo, id, Deposit(amount))
}

func TestADecisionOverSeveralAggregatesIsOneCommit(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts, baskets := s.accounts(t, repository.Config{}), s.baskets(t, repository.Config{})
		endow(t, accounts, "alice", 100)
		var tx repository.Transaction
		from, to, shopping := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, "bob"), baskets.AddTo(&tx, "b")
		s.calls.Reset()
		ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{"k": "v"})

		err := tx.Execute(ctx, func() error {
			assert.Equal(t, Account{100}, from.State)
			assert.EqualValues(t, 1, from.Version)
			assert.Zero(t, to.State)
			shopping.Append(Added{"pen", 1}, Added{"ink", 2})
			return transfer(from, to, 30)()
		})

		require.NoError(t, err)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("alice"), State: Account{70}, Version: 2}, bare(from.Aggregate()))
		assert.Equal(t, repository.Aggregate[Account]{ID: account("bob"), State: Account{30}, Version: 1}, bare(to.Aggregate()))
		assert.Equal(t, repository.Aggregate[Basket]{ID: basket("b"), State: Basket{Items: map[string]int{"pen": 1, "ink": 2}}, Version: 2}, bare(shopping.Aggregate()))
		assert.Equal(t, 1, s.calls.Counts()["TransactWriteItems"])
		assert.Zero(t, s.calls.Counts()["PutItem"])
		last := s.records(t, account("alice"))[1]
		for _, r := range append(s.records(t, account("bob")), s.records(t, basket("b"))...) {
			assert.Equal(t, last.CommitID, r.CommitID)
			assert.Equal(t, aggregate.Metadata{"k": "v"}, r.Metadata)
		}

		next, err := accounts.Save(t.Context(), to.Aggregate(), Events{Deposited{1}})
		require.NoError(t, err, "it is proven as any other")
		assert.Equal(t, 31, next.State.Balance)
	})
}

func TestADecisionOverSeveralAggregatesIsMadeAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	for _, moved := range []string{"alice", "bob", "limit"} {
		for cached, config := range map[string]repository.Config{"without a cache": {}, "with a cache": {Cache: 10}} {
			t.Run(moved+" "+cached, func(t *testing.T) {
				t.Parallel()
				eachLayout(t, func(t *testing.T, s store) {
					accounts, rival := s.accounts(t, config), open(t, s.direct).accounts(t, repository.Config{})
					for _, id := range []string{"alice", "bob", "limit"} {
						endow(t, accounts, id, 100)
					}
					var tx repository.Transaction
					from, to, limit := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, "bob"), accounts.AddTo(&tx, "limit")
					decisions := 0

					err := tx.Execute(t.Context(), func() error {
						if decisions++; decisions == 1 {
							endow(t, rival, moved, 5)
						}
						return transfer(from, to, limit.State.Balance/2)()
					})

					require.NoError(t, err)
					assert.Equal(t, 2, decisions)
					want := map[string]int{"alice": 100 - 50, "bob": 100 + 50, "limit": 100}
					want[moved] += 5
					if moved == "limit" {
						want["alice"], want["bob"] = 100-52, 100+52
					}
					for _, p := range []*repository.Participant[Account]{from, to, limit} {
						assert.Equal(t, want[p.ID.Value], p.Aggregate().State.Balance, p.ID)
						loaded := mustLoad(t, rival, p.ID.Value)
						assert.Equal(t, bare(loaded), bare(p.Aggregate()))
					}
				})
			})
		}
	}
}

// The participants are read by separate requests. Their states may never have existed together.
func TestARefusalCountsOnlyOnVersionsThatWereThereAtTheSameTime(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts, rival := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		endow(t, accounts, "alice", 100)
		endow(t, accounts, "bob", 0)
		var tx repository.Transaction
		a, b := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, "bob")
		total := func() error {
			if a.State.Balance+b.State.Balance != 100 {
				return ErrInsufficientFunds
			}
			return nil
		}
		for _, name := range []string{"refused", "accepted"} {
			decisions := 0
			err := tx.Execute(t.Context(), func() error {
				if decisions++; decisions == 1 {
					var tx repository.Transaction
					from, to := rival.AddTo(&tx, "alice"), rival.AddTo(&tx, "bob")
					require.NoError(t, tx.Execute(t.Context(), transfer(from, to, 10)))
					if name == "refused" {
						// As if the payment was visible in only one of them.
						return ErrInsufficientFunds
					}
				}
				return total()
			})
			require.NoError(t, err, name)
			assert.Equal(t, 2, decisions, name)
		}
		assert.Equal(t, 80, a.Aggregate().State.Balance)

		err := tx.Execute(t.Context(), func() error { return ErrInsufficientFunds })
		var refused *repository.RefusedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, repository.RefusedError{ID: account("alice"), Err: ErrInsufficientFunds}, *refused)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("bob")}, bare(b.Aggregate()))
	})
}

func TestACommandOfSeveralAggregatesTakesEffectOnce(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts := s.accounts(t, repository.Config{})
		endow(t, accounts, "alice", 100)
		pay := func(to string) (*repository.Participant[Account], *repository.Participant[Account], error) {
			var tx repository.Transaction
			a, b := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, to)
			return a, b, tx.Execute(t.Context(), transfer(a, b, 60), repository.WithCommandID("pay"))
		}
		_, _, err := pay("bob")
		require.NoError(t, err)

		// The payment would be refused now, and uses another account.
		a, b, err := pay("carol")
		require.NoError(t, err)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("alice"), State: Account{40}, Version: 2, Repeated: true}, bare(a.Aggregate()))
		assert.Equal(t, repository.Aggregate[Account]{ID: account("carol"), Repeated: true}, bare(b.Aggregate()))

		require.NoError(t, s.journal.Delete(t.Context(), account("bob"), 1, journal.RemoveOptions{}))
		_, b, err = pay("bob")
		require.NoError(t, err)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("bob"), Repeated: true}, bare(b.Aggregate()))

		var tx repository.Transaction
		participant, decisions := accounts.AddTo(&tx, "alice"), 0
		for range 2 {
			require.NoError(t, tx.Execute(t.Context(), func() error { decisions++; return nil }, repository.WithCommandID("look")))
		}
		assert.True(t, participant.Aggregate().Repeated, "one without events is recorded too")
	})
}

func TestACommandOfSeveralAggregatesIsRepeatedUntilItsOutcomeIsKnown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost      dynamotest.Fault
		decisions int
	}{
		"it was not written": {dynamotest.CutConnection(), 2},
		"it was written":     {dynamotest.LoseReply(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				s := setup(t).impatient(t)
				accounts := s.accounts(t, repository.Config{})
				s.proxy.Inject(test.lost, dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
				s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.After(3), dynamotest.Times(1))
				var tx repository.Transaction
				a, b, read := accounts.AddTo(&tx, "a"), accounts.AddTo(&tx, "b"), accounts.AddTo(&tx, "c")
				decisions := 0

				err := tx.Execute(t.Context(), func() error {
					decisions++
					a.Append(Deposited{1})
					b.Append(Deposited{2})
					return nil
				}, repository.WithCommandID("pay"))

				require.NoError(t, err)
				assert.Equal(t, test.decisions, decisions)
				assert.Equal(t, repository.Aggregate[Account]{ID: account("a"), State: Account{1}, Version: 1}, bare(a.Aggregate()))
				assert.Equal(t, repository.Aggregate[Account]{ID: account("b"), State: Account{2}, Version: 1}, bare(b.Aggregate()))
				assert.Equal(t, repository.Aggregate[Account]{ID: account("c")}, bare(read.Aggregate()))
				assert.Len(t, s.records(t, account("a")), 1)
			})
		})
	}
}

func TestAnUnknownOutcomeOfSeveralAggregatesCanBeResolved(t *testing.T) {
	t.Parallel()
	s := setup(t).impatient(t)
	accounts := s.accounts(t, repository.Config{})
	s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.After(2), dynamotest.Times(1))
	var tx repository.Transaction
	accounts.AddTo(&tx, "a")
	b := accounts.AddTo(&tx, "b")

	err := tx.Execute(t.Context(), func() error {
		b.Append(Deposited{2})
		return nil
	})

	var unknown *journal.OutcomeUnknownError
	require.ErrorAs(t, err, &unknown)
	written, err := s.journal.Resolve(t.Context(), unknown)
	require.NoError(t, err)
	assert.True(t, written)
}

func TestAParticipantCanBeForOneVersionAlone(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts, rival := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		endow(t, accounts, "a", 1)
		var tx repository.Transaction
		a := accounts.AddTo(&tx, "a", repository.WithExpectedVersion(1))
		accounts.AddTo(&tx, "b")
		decisions := 0

		err := tx.Execute(t.Context(), func() error {
			if decisions++; decisions == 1 {
				endow(t, rival, "b", 1)
			} else {
				endow(t, rival, "a", 1)
			}
			a.Append(Deposited{1})
			return nil
		})

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, journal.ConflictError{ID: account("a"), Expected: 1, Actual: 2}, *conflict)
		assert.Equal(t, 2, decisions, "a conflict of another participant is worth another attempt")
	})
}

func TestParticipantsThatCannotBeAreRefusedBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	s := setup(t)
	accounts, another := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
	decide := func() error { return errors.New("it must not be asked") }
	of := func(ids ...string) func(*repository.Transaction) {
		return func(tx *repository.Transaction) {
			for _, id := range ids {
				accounts.AddTo(tx, id)
			}
		}
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, test := range map[string]struct {
		add     func(*repository.Transaction)
		options []repository.Option
		kind    any
	}{
		"none":      {of(), nil, journal.ErrInvalidCommit},
		"one twice": {of("a", "a"), nil, journal.ErrInvalidCommit},
		"of two journals": {func(tx *repository.Transaction) {
			accounts.AddTo(tx, "a")
			another.AddTo(tx, "b")
		}, nil, journal.ErrInvalidCommit},
		"an id that is not one":         {of(""), nil, new(*aggregate.InvalidIDError)},
		"a version for all":             {of("a"), []repository.Option{repository.WithExpectedVersion(1)}, journal.ErrInvalidCommit},
		"a command id of a participant": {func(tx *repository.Transaction) { accounts.AddTo(tx, "a", repository.WithCommandID("c")) }, nil, journal.ErrInvalidCommit},
		"a command id that is not":      {of("a"), []repository.Option{repository.WithCommandID("")}, journal.ErrInvalidCommit},
		"too many":                      {of(many...), nil, new(*journal.TooLargeError)},
	} {
		var tx repository.Transaction
		test.add(&tx)
		s.calls.Reset()
		err := tx.Execute(t.Context(), decide, test.options...)
		requireKind(t, err, test.kind, name)
		assert.Empty(t, s.calls.Counts(), name)
	}
	var tx repository.Transaction
	accounts.AddTo(&tx, "a")
	require.ErrorIs(t, tx.Execute(t.Context(), nil), repository.ErrNilDecision)
}

func TestAnAggregateThatWasDeletedCannotBeAParticipant(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		accounts := s.accounts(t, repository.Config{Cache: 10})
		endow(t, accounts, "gone", 1)
		require.NoError(t, s.journal.Delete(t.Context(), account("gone"), 1, journal.RemoveOptions{}))
		var tx repository.Transaction
		a := accounts.AddTo(&tx, "a")
		// The cache holds the account that was deleted.
		accounts.AddTo(&tx, "gone")
		err := tx.Execute(t.Context(), func() error {
			a.Append(Deposited{1})
			return nil
		})
		var deleted *journal.DeletedError
		require.ErrorAs(t, err, &deleted)
		assert.Equal(t, account("gone"), deleted.ID)
	})
}

func TestADecisionWhoseAggregatesAlwaysMoveEnds(t *testing.T) {
	t.Parallel()
	s := setup(t)
	accounts, rival := s.accounts(t, repository.Config{MaxAttempts: 3}), open(t, s.direct).accounts(t, repository.Config{})
	var tx repository.Transaction
	a := accounts.AddTo(&tx, "a")
	accounts.AddTo(&tx, "b")
	for name, outcome := range map[string]error{"committed": nil, "refused": ErrInsufficientFunds} {
		err := tx.Execute(t.Context(), func() error {
			endow(t, rival, "b", 1)
			a.Append(Deposited{1})
			return outcome
		})
		var attempts *repository.AttemptsError
		require.ErrorAs(t, err, &attempts, name)
		assert.Equal(t, 3, attempts.Attempts)
		assert.Equal(t, account("b"), attempts.ID)
	}
}

// Several processes make payments between a few accounts, while replies are lost, requests are
// late, and DynamoDB throttles. After each commit no account is below zero, and the sum of all
// accounts is unchanged.
func TestPaymentsNeitherMakeNorLoseMoney(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(layout, ", seed ", seed), func(t *testing.T) {
				t.Parallel()
				pay(t, layout, seed)
			})
		}
	}
}

func pay(t *testing.T, layout journal.Layout, seed uint64) {
	t.Helper()
	const accountsOf, endowment, payments = 4, 50, 20
	s := setupIn(t, layout)
	repo := s.accounts(t, repository.Config{})
	for n := range accountsOf {
		endow(t, repo, fmt.Sprint(n), endowment)
	}
	var payers sync.WaitGroup
	var faults, late []*dynamotest.Injection
	for p := range 3 {
		random := rand.New(rand.NewPCG(seed, uint64(p)))
		payer := through(t, s.direct).open(t, journal.Config{RetryBudget: 50 * time.Millisecond})
		for _, fault := range []dynamotest.Fault{
			dynamotest.LoseReply(), dynamotest.CutConnection(), dynamotest.Throttle(), dynamotest.Conflict(),
		} {
			faults = append(faults, payer.proxy.Inject(fault, dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.05)))
		}
		faults = append(faults, payer.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem", "Query"), dynamotest.Chance(0.01)))
		delayed := payer.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.05))
		late = append(late, delayed)
		accounts := payer.accounts(t, repository.Config{Cache: random.IntN(2) * 10})
		payers.Add(1)
		go func() {
			defer payers.Done()
			for n := range payments {
				if random.IntN(4) == 0 {
					delayed.Arrive()
				}
				first := random.IntN(accountsOf)
				var tx repository.Transaction
				from := accounts.AddTo(&tx, fmt.Sprint(first))
				to := accounts.AddTo(&tx, fmt.Sprint((first+1+random.IntN(accountsOf-1))%accountsOf))
				amount := 1 + random.IntN(30)
				for range 1 + random.IntN(2) { // each message twice or once
					_ = tx.Execute(context.Background(), transfer(from, to, amount), repository.WithCommandID(fmt.Sprint(p, "/", n)))
				}
			}
		}()
	}
	payers.Wait()
	fired := 0
	for _, fault := range append(faults, late...) {
		fault.Remove()
		fired += fault.Fired()
	}
	assert.Positive(t, fired)
	for _, late := range late {
		late.Arrive()
	}
	requireWholePayments(t, s, accountsOf, endowment)
}

// requireWholePayments replays the accounts in an order of the payments that is consistent with
// each of them, and checks the balances after each payment.
func requireWholePayments(t *testing.T, s store, accounts, endowment int) {
	t.Helper()
	histories, at, balances := make([][]*journal.Record, accounts), make([]int, accounts), make([]int, accounts)
	for n := range accounts {
		histories[n] = s.records(t, account(fmt.Sprint(n)))
		at[n], balances[n] = 1, endowment
	}
	for progress := true; progress; {
		progress = false
		next := map[string][]int{} // the accounts whose next event is the payment
		for n, h := range histories {
			if at[n] < len(h) {
				next[h[at[n]].CommitID] = append(next[h[at[n]].CommitID], n)
			}
		}
		for _, of := range next {
			if len(of) < 2 {
				continue // another account has an earlier payment first
			}
			require.Len(t, of, 2)
			sum := 0
			for _, n := range of {
				event, err := Accounts.Decode(histories[n][at[n]].EventType, histories[n][at[n]].Payload)
				require.NoError(t, err)
				state := Account{balances[n]}
				event.Apply(&state)
				sum += state.Balance - balances[n]
				require.GreaterOrEqual(t, state.Balance, 0, "account %d", n)
				balances[n] = state.Balance
				at[n]++
			}
			require.Zero(t, sum, "a payment neither makes nor loses money")
			progress = true
		}
	}
	payments := 0
	for n, h := range histories {
		require.Equal(t, len(h), at[n], "account %d: all payments are whole", n)
		payments += len(h) - 1
	}
	require.Greater(t, payments, 20, "there are some")
}

// A reader sees the items of a transaction one by one. A decision that writes nothing must not rely
// on a payment that is still being written.
func TestADecisionDoesNotCountOnAPaymentThatShowsInPart(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { seePayments(t, layout) })
		})
	}
}

func seePayments(t *testing.T, layout journal.Layout) {
	t.Helper()
	db := dynamotest.New(t)
	s := openOn(t, db, journal.Config{Layout: layout})
	payer, auditor := s.accounts(t, repository.Config{Cache: 10}), open(t, db.Client()).accounts(t, repository.Config{MaxAttempts: 1000})
	for _, id := range []string{"a", "b"} {
		endow(t, payer, id, 100)
	}
	db.Inject(dynamotest.Latency(100*time.Microsecond, time.Millisecond))
	db.Inject(dynamotest.Tear(dynamotest.For(2*time.Millisecond)), dynamotest.On("TransactWriteItems"))
	ctx, stop := context.WithCancel(t.Context())
	paid := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			var tx repository.Transaction
			from, to := payer.AddTo(&tx, "a"), payer.AddTo(&tx, "b")
			if err := tx.Execute(context.Background(), transfer(from, to, 0)); err != nil {
				paid <- err
				return
			}
			// Without a pause, a payment would be in progress nearly all the time.
			time.Sleep(5 * time.Millisecond)
		}
		paid <- nil
	}()
	var tx repository.Transaction
	a, b, torn := auditor.AddTo(&tx, "a"), auditor.AddTo(&tx, "b"), 0
	for rounds := 0; rounds < 10 || torn == 0 && len(paid) == 0; rounds++ {
		err := tx.Execute(ctx, func() error {
			if a.Version != b.Version { // each payment is an event of both
				torn++
				return errors.New("a payment is in one account only")
			}
			return nil
		})
		require.NoError(t, err)
	}
	stop()
	require.NoError(t, <-paid)
}

// Customers reserve seats, several at a time, under a quota that another aggregate sets.
func TestNoSeatIsSoldTwiceAndNoQuotaExceeded(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		const seatsOf, customersOf, quota = 12, 4, 2
		s := setupIn(t, layout)
		mustExecute(t, newRepository(t, s, Shows, repository.Config{}), "hamlet", always[Show](ShowOpened{SeatsEach: quota}))
		var buyers sync.WaitGroup
		for b := range 3 {
			random := rand.New(rand.NewPCG(7, uint64(b)))
			buyer := through(t, s.direct).open(t, journal.Config{RetryBudget: 50 * time.Millisecond})
			for _, fault := range []dynamotest.Fault{dynamotest.LoseReply(), dynamotest.CutConnection(), dynamotest.Throttle()} {
				buyer.proxy.Inject(fault, dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.1))
			}
			seats, customers, shows := newRepository(t, buyer, Seats, repository.Config{}), newRepository(t, buyer, Customers, repository.Config{Cache: 5}), newRepository(t, buyer, Shows, repository.Config{Cache: 1})
			buyers.Add(1)
			go func() {
				defer buyers.Done()
				for n := range 25 {
					var tx repository.Transaction
					show, customer := shows.AddTo(&tx, "hamlet"), customers.AddTo(&tx, fmt.Sprint(random.IntN(customersOf)))
					var wanted []*aggregate.Participant[Seat]
					for _, id := range random.Perm(seatsOf)[:1+random.IntN(2)] {
						wanted = append(wanted, &seats.AddTo(&tx, fmt.Sprint(id)).Participant)
					}
					_ = tx.Execute(context.Background(), func() error {
						return Reserve(&show.Participant, &customer.Participant, wanted...)
					}, repository.WithCommandID(fmt.Sprint(b, "/", n)))
				}
			}()
		}
		buyers.Wait()

		held, sold := map[string]int{}, 0
		for n := range seatsOf {
			seat, err := newRepository(t, s, Seats, repository.Config{}).Load(t.Context(), fmt.Sprint(n))
			if errors.Is(err, journal.ErrNotFound) {
				continue
			}
			require.NoError(t, err)
			require.EqualValues(t, 1, seat.Version, "seat %d is sold once", n)
			held[seat.State.HeldBy]++
			sold++
		}
		require.Positive(t, sold)
		for n := range customersOf {
			customer, err := newRepository(t, s, Customers, repository.Config{}).Load(t.Context(), fmt.Sprint(n))
			if !errors.Is(err, journal.ErrNotFound) {
				require.NoError(t, err)
			}
			assert.LessOrEqual(t, customer.State.Seats, quota)
			assert.Equal(t, held[fmt.Sprint(n)], customer.State.Seats, "customer %d has what the seats say", n)
		}
	})
}
