package repository_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Each commit stores a snapshot, with and without a cache.
var eachCommit = map[string]repository.Config{
	"without a cache": {Snapshots: repository.Every(1)},
	"with a cache":    {Snapshots: repository.Every(1), Cache: 10},
}

// The aggregate has a balance of 100. The caller's changes to State have no effect.
func TestAStateThatNobodyReplayedIsNeverStored(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		for forged, forge := range map[string]func(repository.Aggregate[Account]) repository.Aggregate[Account]{
			"made by hand": func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				return repository.Aggregate[Account]{ID: a.ID, Version: a.Version}
			},
			"made by hand with a state": func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				return repository.Aggregate[Account]{ID: a.ID, Version: a.Version, State: Account{1_000_000}}
			},
			"decoded from JSON": func(a repository.Aggregate[Account]) (decoded repository.Aggregate[Account]) {
				text, err := json.Marshal(a)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &decoded))
				decoded.State.Balance = 5
				return decoded
			},
			"with a state that was assigned": func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.State = Account{1_000_000}
				return a
			},
			"with a state that was changed": func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.State.Balance++
				return a
			},
		} {
			t.Run(name+", "+forged, func(t *testing.T) {
				t.Parallel()
				s := setup(t)
				repo := s.accounts(t, config)
				a := mustExecute(t, repo, "42", Deposit(100))

				saved := mustSave(t, repo, forge(a), Events{Deposited{1}})
				assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{101}, Version: 2}, bare(saved))

				for _, reader := range []*repository.Repository[Account]{repo, s.accounts(t, config)} {
					loaded := mustLoad(t, reader, "42")
					assert.Equal(t, 101, loaded.State.Balance)
				}
			})
		}
	}
}

func TestAnAggregateThatIsNotKnownIsSavedOnlyAtTheVersionThatIsStored(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		for forged, test := range map[string]struct {
			forge  func(repository.Aggregate[Account]) repository.Aggregate[Account]
			actual uint64
		}{
			"a version raised by hand": {func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.Version = 99
				return a
			}, 2},
			"a version lowered by hand": {func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.Version--
				return a
			}, 2},
			"a version of nothing": {func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.Version = 0
				return a
			}, 2},
			"another id": {func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.ID = account("other")
				return a
			}, 1},
			"an id that is free": {func(a repository.Aggregate[Account]) repository.Aggregate[Account] {
				a.ID = account("free")
				return a
			}, 0},
		} {
			t.Run(name+", "+forged, func(t *testing.T) {
				t.Parallel()
				repo := setup(t).accounts(t, config)
				mustExecute(t, repo, "other", Deposit(7))
				mustExecute(t, repo, "42", Deposit(50))
				a := mustExecute(t, repo, "42", Deposit(50))

				given := test.forge(a)
				_, err := repo.Save(t.Context(), given, Events{Deposited{1}})
				var conflict *journal.ConflictError
				require.ErrorAs(t, err, &conflict)
				assert.Equal(t, journal.ConflictError{ID: given.ID, Expected: given.Version, Actual: test.actual}, *conflict)
			})
		}
	}
}

func TestAnAggregateOfAnotherIDIsSavedOnItsOwnState(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		repo := setup(t).accounts(t, config)
		mustExecute(t, repo, "other", Deposit(7))
		a := mustExecute(t, repo, "42", Deposit(100))
		a.ID = account("other") // an aggregate with the same version
		a = mustSave(t, repo, a, Events{Deposited{1}})
		assert.Equal(t, 8, a.State.Balance, name)
	}
}

func TestAnOldAggregateWhoseVersionWasRaisedIsSavedOnTheStateThatIsStored(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		s := setup(t)
		repo := s.accounts(t, config)
		a := mustExecute(t, repo, "42", Deposit(100))
		mustExecute(t, repo, "42", Deposit(100))
		a.Version++
		a = mustSave(t, repo, a, Events{Deposited{1}})
		assert.Equal(t, 201, a.State.Balance, name)
		loaded := mustLoad(t, s.accounts(t, config), "42")
		assert.Equal(t, 201, loaded.State.Balance, name)
	}
}

func TestAnAggregateOfAnotherRepositoryIsReadFirst(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		here, there := setup(t).accounts(t, config), setup(t).accounts(t, config)
		mustExecute(t, here, "42", Deposit(100))
		a := mustExecute(t, there, "42", Deposit(1))
		a = mustSave(t, here, a, Events{Deposited{1}})
		assert.Equal(t, 101, a.State.Balance, name)
	}
}

// Each function changes memory that a state refers to, before the aggregate is saved.
var ruins = map[string]func(*repository.Aggregate[Basket]){
	"through a map":     func(a *repository.Aggregate[Basket]) { a.State.Items["stolen"] = 1 },
	"through a slice":   func(a *repository.Aggregate[Basket]) { a.State.Labels[0] = "ruined" },
	"through a pointer": func(a *repository.Aggregate[Basket]) { *a.State.Coupon = "ruined" },
	"by assignment":     func(a *repository.Aggregate[Basket]) { a.State = Basket{} },
}

func TestAStateThatTheCallerChangedIsNeverStored(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]repository.Config{
		"a snapshot with each commit":            {Snapshots: repository.Every(1)},
		"a snapshot with the third commit":       {Snapshots: repository.Every(6)},
		"a snapshot with the third, and a cache": {Snapshots: repository.Every(6), Cache: 10},
		"no snapshots, and a cache":              {Snapshots: repository.Never, Cache: 10},
	} {
		for how, ruin := range ruins {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := setup(t)
				repo := s.baskets(t, config)
				code := "X"
				a := mustExecute(t, repo, "42", always[Basket](Added{"pen", 1}, &Labelled{[]string{"a"}}, CouponGiven{&code}))
				want := Basket{Items: map[string]int{"pen": 1}, Labels: []string{"a"}, Coupon: &code}
				for n := range 4 {
					ruin(&a)
					a = mustSave(t, repo, a, aggregate.Events[Basket]{Added{"pen", 1}})
					want.Items["pen"] = n + 2
					for _, reader := range []*repository.Repository[Basket]{repo, s.baskets(t, config)} {
						loaded := mustLoad(t, reader, "42")
						require.Equal(t, want, loaded.State)
					}
					if a.State.Items == nil || a.State.Labels == nil || a.State.Coupon == nil {
						a = mustLoad(t, repo, "42") // so that there is a state to change
					}
				}
			})
		}
	}
}

// LoadAtVersion does not add to the cache.
func TestAStateThatTheCallerChangedDoesNotGetIntoTheCache(t *testing.T) {
	t.Parallel()
	for how, ruin := range ruins {
		repo := setup(t).baskets(t, repository.Config{Cache: 10})
		code := "X"
		for _, event := range []aggregate.Event[Basket]{Added{"pen", 1}, &Labelled{[]string{"a"}}, CouponGiven{&code}} {
			mustExecute(t, repo, "42", always(event))
		}
		a := mustLoadAtVersion(t, repo, "42", 3)
		ruin(&a)
		mustSave(t, repo, a, aggregate.Events[Basket]{Added{"pen", 1}})
		loaded := mustLoad(t, repo, "42")
		assert.Equal(t, Basket{Items: map[string]int{"pen": 2}, Labels: []string{"a"}, Coupon: &code}, loaded.State, how)
	}
}

func TestASaveReadsOnlyWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.baskets(t, repository.Config{Snapshots: repository.Every(3)})
	a, err := repo.NewAggregate("42")
	require.NoError(t, err)
	save := func(want map[string]int, why string) {
		s.calls.Reset()
		a = mustSave(t, repo, a, aggregate.Events[Basket]{Added{"pen", 1}})
		assert.Equal(t, want, s.calls.Counts(), "version %d: %s", a.Version, why)
	}
	commit := "TransactWriteItems"
	save(map[string]int{commit: 1}, "the state before the first event is known")
	save(map[string]int{commit: 1}, "no snapshot")
	save(map[string]int{commit: 1, "GetItem": 2}, "the snapshot is of a replayed state")
	save(map[string]int{commit: 1}, "no snapshot")

	a = mustLoad(t, repo, "42")
	a = repository.Aggregate[Basket]{ID: a.ID, Version: a.Version}
	save(map[string]int{commit: 1, "GetItem": 2}, "an aggregate made by hand is read")
}

func TestTheZeroStateIsThatOfANewAggregate(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		repo := setup(t).baskets(t, config)
		a, err := repo.NewAggregate("42")
		require.NoError(t, err)
		a.State.Items = map[string]int{"stolen": 1}
		a = mustSave(t, repo, a, aggregate.Events[Basket]{Added{"pen", 1}})
		loaded := mustLoad(t, repo, "42")
		assert.Equal(t, map[string]int{"pen": 1}, loaded.State.Items, name)
		assert.Equal(t, bare(loaded), bare(a), name)
	}
}

func TestAnAggregateOfAnotherVersionThanExpectedIsNotSaved(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	a := mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()
	_, err := repo.Save(t.Context(), a, Events{Deposited{1}}, repository.WithExpectedVersion(7))
	var conflict *journal.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, journal.ConflictError{ID: account("42"), Expected: 7, Actual: 1}, *conflict)
	assert.Empty(t, s.calls.Counts())
	mustSave(t, repo, a, Events{Deposited{1}}, repository.WithExpectedVersion(1))
}
