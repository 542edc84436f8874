package repository_test

import (
	"fmt"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// states returns the values of States, and its error.
func states(t *testing.T, r repository.AnyRepository, id string, q repository.StatesQuery) (all []repository.StateAfter, err error) {
	t.Helper()
	for s, err := range r.States(t.Context(), id, q) {
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// numbered returns the balances of the states, and the numbers of their events; the first number is
// 0.
func numbered(all []repository.StateAfter) (balances []int, numbers []uint64) {
	for _, s := range all {
		number := uint64(0)
		if s.Record != nil {
			number = s.Record.Number
		}
		balances, numbers = append(balances, s.State.(Account).Balance), append(numbers, number)
	}
	return balances, numbers
}

func (s store) deposit(t *testing.T, r *repository.Repository[Account], id string, n int) {
	t.Helper()
	for n > 0 {
		mustExecute(t, r, id, always(deposits(min(n, 50))...))
		n -= 50
	}
}

// eachLayoutCounted runs a test with a store of each layout, and a function that counts read units.
func eachLayoutCounted(t *testing.T, test func(t *testing.T, s store, cost func(do func()) (read float64))) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		test(t, openOn(t, db, journal.Config{Layout: layout}), func(do func()) float64 {
			recording := db.Record()
			defer recording.Stop()
			do()
			read, _ := recording.Units()
			return read
		})
	})
}

func TestStatesBeginWithTheStateBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(3), Redundancy: &repository.Redundancy{Keep: 2}})
		assert.Equal(t, "account", repo.Type())
		for range 10 {
			mustExecute(t, repo, "42", Deposit(10))
		}
		for _, test := range []struct {
			from, to uint64
			balances []int
			numbers  []uint64
		}{
			{0, 3, []int{0, 10, 20, 30}, []uint64{0, 1, 2, 3}},
			{1, 1, []int{0, 10}, []uint64{0, 1}},
			{5, 6, []int{40, 50, 60}, []uint64{0, 5, 6}},
			{9, 0, []int{80, 90, 100}, []uint64{0, 9, 10}},
			{9, 99, []int{80, 90, 100}, []uint64{0, 9, 10}},
			{11, 0, []int{100}, []uint64{0}},
			{5, 4, []int{40}, []uint64{0}},
		} {
			all, err := states(t, repo, "42", repository.StatesQuery{From: test.from, To: test.to})

			require.NoError(t, err)
			balances, numbers := numbered(all)
			assert.Equal(t, test.balances, balances, "%d to %d", test.from, test.to)
			assert.Equal(t, test.numbers, numbers, "%d to %d", test.from, test.to)
		}
	})
}

func TestStatesShareNoMemory(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.baskets(t, repository.Config{Snapshots: repository.Every(2), Redundancy: &repository.Redundancy{Keep: 5}})
		code := "A"
		for _, event := range []aggregate.Event[Basket]{
			Added{"tea", 1}, &Labelled{[]string{"new"}}, CouponGiven{&code}, Added{"tea", 1}, &Labelled{[]string{"x"}}, CouponGiven{&code},
		} {
			mustExecute(t, repo, "42", always(event))
		}
		for from := uint64(1); from <= 6; from++ {
			want := map[uint64]repository.Aggregate[Basket]{}
			for number := range uint64(7) {
				a := mustLoadAtVersion(t, repo, "42", number)
				want[number] = a
			}
			number := from - 1
			for got, err := range repo.States(t.Context(), "42", repository.StatesQuery{From: from}) {
				require.NoError(t, err)
				state := got.State.(Basket)
				assert.Equal(t, want[number].State, state, "after event %d, from %d", number, from)
				if number++; number > 1 {
					state.Items["tea"] = 1000 // must not be visible in a later state
				}
				if len(state.Labels) > 0 {
					state.Labels[0] = "changed"
				}
				if state.Coupon != nil {
					*state.Coupon = "changed"
				}
			}
			assert.EqualValues(t, 7, number)
		}
	})
}

func TestStatesStartFromTheNearestSnapshot(t *testing.T) {
	t.Parallel()
	eachLayoutCounted(t, func(t *testing.T, s store, cost func(func()) float64) {
		repo := s.accounts(t, repository.Config{Redundancy: &repository.Redundancy{Keep: 100}})
		s.deposit(t, repo, "42", 5000)
		for _, from := range []uint64{100, 2401, 3750, 5000} {
			var all []repository.StateAfter
			var err error
			read := cost(func() {
				all, err = states(t, repo, "42", repository.StatesQuery{From: from, To: from + 1, MaxReplay: 100})
			})

			require.NoError(t, err)
			balances, _ := numbered(all)
			assert.EqualValues(t, from-1, balances[0])
			assert.Less(t, read, 20.0, "from %d: head, snapshot and up to 102 events", from)
			assert.Positive(t, read)
		}
	})
}

func TestStatesRefuseToReplayMoreThanTheLimitBeforeTheyReadEvents(t *testing.T) {
	t.Parallel()
	eachLayoutCounted(t, func(t *testing.T, s store, cost func(func()) float64) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Never})
		s.deposit(t, repo, "42", 2500)
		start := uint64(50) // the snapshot of the first commit
		if s.isPacked() {
			start = 0
		}
		var all []repository.StateAfter
		var err error
		read := cost(func() { all, err = states(t, repo, "42", repository.StatesQuery{From: 2400}) })

		var limit *repository.ReplayLimitError
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, repository.ReplayLimitError{ID: account("42"), From: 2400, Start: start, Max: 2000}, *limit)
		assert.Contains(t, err.Error(), fmt.Sprintf("takes %d events", 2399-start))
		assert.Empty(t, all)
		assert.LessOrEqual(t, read, 8.0, "no events: those alone are more than 50 units")

		all, err = states(t, repo, "42", repository.StatesQuery{From: 2400, To: 2400, MaxReplay: 2399 - start})
		require.NoError(t, err)
		assert.Len(t, all, 2)
		_, err = states(t, repo, "42", repository.StatesQuery{From: 2400, MaxReplay: 2398 - start})
		require.ErrorAs(t, err, &limit)
	})
}

func TestStatesReadEventsAsTheyAreConsumed(t *testing.T) {
	t.Parallel()
	eachLayoutCounted(t, func(t *testing.T, s store, cost func(func()) float64) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Never, Cache: 1})
		large := make(Events, 5)
		for i := range large { // each of them differs, because a commit is compressed as a whole
			large[i] = Noted{incompressible(100_000)[20_000*i:][:20_000]}
		}
		for range 30 {
			mustExecute(t, repo, "42", always(large...))
		}
		upTo := func(number uint64) func() {
			return func() {
				for state, err := range repo.States(t.Context(), "42", repository.StatesQuery{}) {
					require.NoError(t, err)
					if state.Record != nil && state.Record.Number == number {
						return
					}
				}
			}
		}

		assert.Less(t, cost(upTo(10)), cost(upTo(150))/2, "one page of 1 MB, of 3 MB")
	})
}

func TestStatesOfATruncatedAggregateStartAtItsSnapshot(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(5)})
		for range 7 {
			mustExecute(t, repo, "42", Deposit(1))
		}
		require.NoError(t, repo.Truncate(t.Context(), "42", 6, journal.RemoveOptions{}))

		all, err := states(t, repo, "42", repository.StatesQuery{From: 6})

		require.NoError(t, err)
		balances, numbers := numbered(all)
		assert.Equal(t, []int{5, 6, 7}, balances)
		assert.Equal(t, []uint64{0, 6, 7}, numbers)
		for _, q := range []repository.StatesQuery{{}, {From: 5}} {
			all, err = states(t, repo, "42", q)
			var truncated *journal.TruncatedError
			require.ErrorAs(t, err, &truncated)
			assert.EqualValues(t, 6, truncated.Before)
			assert.Empty(t, all)
		}
		_, err = states(t, s.accounts(t, repository.Config{IgnoreSnapshots: true}), "42", repository.StatesQuery{From: 7, MaxReplay: 1})
		require.ErrorAs(t, err, new(*journal.TruncatedError), "and not of the limit, which another one would not help")
	})
}

func TestStatesReturnTheErrorsOfALoad(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Never})
		_, err := states(t, repo, "42", repository.StatesQuery{})
		require.ErrorIs(t, err, journal.ErrNotFound)
		_, err = states(t, repo, "", repository.StatesQuery{})
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		mustExecute(t, repo, "42", always[Account](Deposited{1}, Noted{"a"}, Deposited{1}))

		_, err = states(t, repo, "42", repository.StatesQuery{From: 5})
		var missing *repository.NoSuchEventError
		require.ErrorAs(t, err, &missing)
		assert.Equal(t, repository.NoSuchEventError{ID: account("42"), Number: 4, Version: 3}, *missing)

		older := newRepository(t, s, aggregate.Define[Account]("account", Deposited{}, Withdrawn{}), repository.Config{IgnoreSnapshots: true})
		all, err := states(t, older, "42", repository.StatesQuery{})
		var unknown *repository.EventError
		require.ErrorAs(t, err, &unknown)
		assert.EqualValues(t, 2, unknown.Number)
		assert.Len(t, all, 2, "before event 1, and after it")

		s.proxy.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}))
		_, err = states(t, repo, "42", repository.StatesQuery{})
		require.ErrorIs(t, err, journal.ErrAccess)
	})
}

func TestStatesOfADeletedAggregateAreNotThere(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})
		mustExecute(t, repo, "42", Deposit(1))
		require.NoError(t, repo.Delete(t.Context(), "42", 1, journal.RemoveOptions{}))

		_, err := states(t, repo, "42", repository.StatesQuery{})

		require.ErrorAs(t, err, new(*journal.DeletedError))
	})
}

func TestStatesNeitherUseNorChangeTheCache(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.baskets(t, repository.Config{Cache: 10})
	mustExecute(t, repo, "42", always[Basket](Added{"tea", 1}, Added{"tea", 1}))
	before := repo.Stats()

	for state, err := range repo.States(t.Context(), "42", repository.StatesQuery{}) {
		require.NoError(t, err)
		if state.Record != nil {
			state.State.(Basket).Items["tea"] = 1000
		}
	}

	assert.Equal(t, before, repo.Stats())
	a := mustLoad(t, repo, "42")
	assert.Equal(t, 2, a.State.Items["tea"])
	assert.EqualValues(t, 1, repo.Stats().CacheHits-before.CacheHits)
}
