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

// stalePacked returns a packed journal whose eventually consistent reads show what was there some
// time ago.
func stalePacked(t *testing.T, least, most time.Duration) (*dynamotest.DB, *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 4})
	db.Inject(dynamotest.StaleReads(least, most), dynamotest.On("GetItem", "Query"))
	return db, j
}

// Half of what strongly consistent reads cost.
func TestPackedADecisionIsMadeOnEventuallyConsistentReads(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{Snapshots: repository.Never})
	for range 20 {
		mustExecute(t, repo, "42", always[Account](Noted{incompressible(900)}))
	}
	calls.Reset()
	mustLoad(t, repo, "42")
	strong, _ := calls.Units()
	calls.Reset()
	mustExecute(t, repo, "42", Deposit(1))
	read, written := calls.Units()
	assert.InDelta(t, strong/2, read, 0.01)
	assert.InDelta(t, 2, written, 0)
	assert.Equal(t, map[string]int{"GetItem": 1, "Query": 1, "PutItem": 1}, calls.Counts())
}

// The result may be old, but not older than what the repository has written.
func TestPackedALoadMayBeEventuallyConsistent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, j := stalePacked(t, time.Minute, time.Minute)
		repo, other := testjournal.Repository(t, j, Accounts, repository.Config{Cache: 5}), testjournal.Repository(t, j, Accounts, repository.Config{})
		mustExecute(t, other, "42", Deposit(1))
		a, err := repo.Load(t.Context(), "42", repository.Eventually())
		require.NoError(t, err)
		assert.EqualValues(t, 1, a.Version, "it seems to have no events, so it is read again")
		time.Sleep(2 * time.Minute)
		mustExecute(t, other, "42", Deposit(1))

		calls := db.Record()
		a, err = repo.Load(t.Context(), "42", repository.Eventually(), nil)
		require.NoError(t, err)
		assert.EqualValues(t, 1, a.Version)
		read, _ := calls.Units()
		assert.InDelta(t, 1, read, 0)
		_, err = repo.Save(t.Context(), a, Events{Deposited{1}})
		require.ErrorIs(t, err, journal.ErrConflict)
		assert.EqualValues(t, 2, mustLoad(t, repo, "42").Version)
		a, err = other.Load(t.Context(), "42", repository.Eventually())
		require.NoError(t, err)
		assert.EqualValues(t, 2, a.Version)

		_, err = repo.Load(t.Context(), "43", repository.Eventually())
		require.ErrorIs(t, err, journal.ErrNotFound)
	})
}

// A refusal costs one unit and one round trip more.
func TestPackedARefusalIsConfirmedByOneRead(t *testing.T) {
	t.Parallel()
	repo, calls := packedAccounts(t, repository.Config{})
	mustExecute(t, repo, "42", Deposit(1))
	for name, test := range map[string]struct {
		options []repository.Option
		counts  map[string]int
		units   float64
	}{
		"without an id": {nil, map[string]int{"GetItem": 1, "Query": 2}, 2},
		"with an id": {
			[]repository.Option{repository.WithCommandID("1")}, map[string]int{"GetItem": 1, "Query": 1, "TransactGetItems": 1}, 3,
		},
	} {
		calls.Reset()
		_, err := repo.Execute(t.Context(), "42", Withdraw(9), test.options...)
		require.ErrorIs(t, err, ErrInsufficientFunds, name)
		read, written := calls.Units()
		assert.Equal(t, test.counts, calls.Counts(), name)
		assert.InDelta(t, test.units, read, 0, name)
		assert.Zero(t, written, name)
	}
}

// After a conflict only the new commit is read.
func TestPackedAConflictCostsOneReadOfWhatIsNew(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]repository.Option{"without an id": nil, "with an id": {repository.WithCommandID("1")}} {
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 4})
		repo, rival := testjournal.Repository(t, j, Accounts, repository.Config{}), testjournal.Repository(t, j, Accounts, repository.Config{Cache: 1})
		for range 10 {
			mustExecute(t, rival, "42", Deposit(1))
		}
		calls, runs := db.Record(), 0
		a := mustExecute(t, repo, "42", func(Account) (Events, error) {
			if runs++; runs == 1 {
				mustExecute(t, rival, "42", Deposit(1))
			}
			return Events{Deposited{1}}, nil
		}, options...)
		assert.Equal(t, 12, a.State.Balance, name)
		assert.Equal(t, map[string]int{"GetItem": 1, "Query": 2, "PutItem": 3}, calls.Counts(), name)
	}
}

// However old the reads are, a single caller gets what the rules say for the stored state.
func TestPackedStaleReadsChangeNoOutcome(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { runStaleCommands(t, seed) })
		})
	}
}

func runStaleCommands(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 39)) //nolint:gosec // a test draws
	_, j := stalePacked(t, 0, time.Duration(1+random.IntN(2000))*time.Millisecond)
	config := func() repository.Config {
		return repository.Config{Cache: []int{0, 0, 2}[random.IntN(3)], Snapshots: []repository.SnapshotPolicy{nil, repository.Every(3)}[random.IntN(2)]}
	}
	repos := []*repository.Repository[Account]{testjournal.Repository(t, j, Accounts, config()), testjournal.Repository(t, j, Accounts, config())}
	type history struct {
		balance, version int
		executed         map[string]bool
	}
	all := map[string]*history{"a": {executed: map[string]bool{}}, "b": {executed: map[string]bool{}}}
	for step := range 120 {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		repo, id := repos[random.IntN(2)], []string{"a", "b"}[random.IntN(2)]
		h := all[id]
		amount := 1 + random.IntN(5)
		var options []repository.Option
		command := ""
		if random.IntN(2) == 0 {
			command = fmt.Sprint("command ", random.IntN(40))
			options = append(options, repository.WithCommandID(command))
		}
		kind := random.IntN(4)
		decide := map[int]aggregate.Decision[Account]{
			0: Deposit(amount), 1: Deposit(amount), 2: Withdraw(amount), 3: always[Account](),
		}[kind]
		a, err := repo.Execute(t.Context(), id, decide, options...)
		about := fmt.Sprintf("seed %d, step %d, %s on %s at %d with %d, kind %d", seed, step, command, id, h.version, h.balance, kind)
		switch {
		case command != "" && h.executed[command]:
			require.NoError(t, err, about)
			require.True(t, a.Repeated, about)
		case kind == 2 && h.balance < amount:
			require.ErrorIs(t, err, ErrInsufficientFunds, about)
			continue
		default:
			require.NoError(t, err, about)
			require.False(t, a.Repeated, about)
			if kind != 3 {
				h.version++
				h.balance += map[int]int{0: amount, 1: amount, 2: -amount}[kind]
			}
			if command != "" {
				h.executed[command] = true
			}
		}
		require.EqualValues(t, h.version, a.Version, about)
		require.Equal(t, h.balance, a.State.Balance, about)
	}
	for id, h := range all {
		if h.version > 0 {
			require.Equal(t, h.balance, mustLoad(t, repos[0], id).State.Balance)
		}
	}
}

// Several writers with stale reads: no withdrawal is lost, doubled, or made on money that is not
// there.
func TestPackedWritersWithStaleReadsKeepTheRules(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, j := stalePacked(t, 0, time.Second)
		db.Inject(dynamotest.Latency(time.Millisecond, 20*time.Millisecond))
		setup := testjournal.Repository(t, j, Accounts, repository.Config{})
		mustExecute(t, setup, "42", Deposit(100))
		var writers sync.WaitGroup
		withdrawn, refused := make([]int, 8), make([]int, 8)
		for w := range withdrawn {
			repo := testjournal.Repository(t, j, Accounts, repository.Config{MaxAttempts: 1000})
			writers.Add(1)
			go func() {
				defer writers.Done()
				for n := range 20 {
					for again := range 2 { // the second is a repetition
						_, err := repo.Execute(t.Context(), "42", Withdraw(1), repository.WithCommandID(fmt.Sprintf("%d of %d", n, w)))
						switch {
						case errors.Is(err, ErrInsufficientFunds):
							refused[w]++
						case assert.NoError(t, err) && again == 0:
							withdrawn[w]++
						}
					}
				}
			}()
		}
		writers.Wait()
		sum := 0
		for w := range withdrawn {
			sum += withdrawn[w]
		}
		assert.Equal(t, 100, sum)
		assert.Equal(t, 0, mustLoad(t, setup, "42").State.Balance)
	})
}

// A read that misses what this repository wrote is not used, without a conflict.
func TestPackedAReadIsNotOlderThanTheOwnCommit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, j := stalePacked(t, time.Hour, time.Hour)
		repo := testjournal.Repository(t, j, Accounts, repository.Config{})
		calls := db.Record()
		for n := range 5 {
			a := mustExecute(t, repo, "42", Deposit(1))
			assert.Equal(t, n+1, a.State.Balance)
		}
		assert.Zero(t, repo.Stats().Conflicts)
		assert.Equal(t, 5, calls.Counts()["PutItem"])
	})
}

// After a conflict because of a stale read, strongly consistent reads are used for some seconds.
func TestPackedStaleReadsThatCostConflictsAreAvoidedForSomeTime(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, j := stalePacked(t, time.Minute, time.Minute)
		one, other := testjournal.Repository(t, j, Accounts, repository.Config{}), testjournal.Repository(t, j, Accounts, repository.Config{})
		for range 20 {
			mustExecute(t, one, "42", Deposit(1))
			time.Sleep(100 * time.Millisecond)
			mustExecute(t, other, "42", Deposit(1))
			time.Sleep(100 * time.Millisecond)
		}
		assert.EqualValues(t, 1, other.Stats().Conflicts, "4 seconds")
		time.Sleep(10 * time.Second)
		mustExecute(t, other, "42", Deposit(1))
		time.Sleep(100 * time.Millisecond)
		mustExecute(t, one, "42", Deposit(1))
		assert.LessOrEqual(t, one.Stats().Conflicts+other.Stats().Conflicts, uint64(3))
	})
}

// Calls on one aggregate of one repository wait for each other instead of competing.
func TestCallsOnOneAggregateRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for _, layout := range layouts {
			db := dynamotest.New(t)
			s := openOn(t, db, journal.Config{Layout: layout})
			db.Inject(dynamotest.Latency(time.Millisecond, 5*time.Millisecond))
			for _, cache := range []int{0, 10} {
				repo, id := s.accounts(t, repository.Config{Cache: cache}), fmt.Sprint(cache)
				var calls sync.WaitGroup
				for n := range 100 {
					calls.Add(1)
					go func() {
						defer calls.Done()
						_, err := repo.Execute(context.Background(), id, Deposit(1), repository.WithCommandID(fmt.Sprint(n)))
						assert.NoError(t, err)
					}()
				}
				calls.Wait()
				assert.Equal(t, 100, mustLoad(t, repo, id).State.Balance)
				assert.Zero(t, repo.Stats().Conflicts)
			}
		}
	})
}

func TestADecisionMayExecuteOnItsOwnAggregate(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for _, layout := range layouts {
			s := openOn(t, dynamotest.New(t), journal.Config{Layout: layout})
			repo, runs := s.accounts(t, repository.Config{}), 0
			begun := time.Now()
			a := mustExecute(t, repo, "42", func(Account) (Events, error) {
				if runs++; runs == 1 {
					mustExecute(t, repo, "42", Deposit(2))
				}
				return Events{Deposited{1}}, nil
			})
			assert.Equal(t, 3, a.State.Balance)
			assert.Equal(t, 2, runs)
			assert.Less(t, time.Since(begun), time.Second)
		}
	})
}
