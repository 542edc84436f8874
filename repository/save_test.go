package repository_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestSaveAppendsAtTheVersionThatWasLoaded(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	a, err := repo.NewAggregate("42")
	require.NoError(t, err)
	a = mustSave(t, repo, a, Events{Deposited{100}})
	a = mustSave(t, repo, a, Events{Withdrawn{10}, Withdrawn{20}})
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{70}, Version: 3}, bare(a))

	loaded := mustLoad(t, repo, "42")
	assert.Equal(t, a, loaded)
}

func TestSaveIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Snapshots: repository.Every(5)})
	a, err := repo.NewAggregate("42")
	require.NoError(t, err)
	for _, events := range []int{1, 10, 1, 99} {
		s.calls.Reset()
		a = mustSave(t, repo, a, deposits(events))
		assert.Equal(t, map[string]int{"TransactWriteItems": 1}, s.calls.Counts(), "%d events", events)
	}
}

func TestSaveReturnsAConflictAndTheAggregateAsItWas(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.baskets(t, repository.Config{})
	mine := mustExecute(t, repo, "42", always[Basket](Added{"pen", 1}))
	mustExecute(t, repo, "42", always[Basket](Added{"ink", 1}))
	s.calls.Reset()

	after, err := repo.Save(t.Context(), mine, aggregate.Events[Basket]{Removed{"pen"}})
	var conflict *journal.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, journal.ConflictError{ID: basket("42"), Expected: 1, Actual: 2}, *conflict)
	assert.Equal(t, map[string]int{"TransactWriteItems": 1}, s.calls.Counts(), "a conflict is not tried again")
	want := repository.Aggregate[Basket]{ID: basket("42"), State: Basket{Items: map[string]int{"pen": 1}}, Version: 1}
	assert.Equal(t, want, bare(after))
	assert.Equal(t, want, bare(mine), "what was given must not change")
}

func TestSaveOfANewAggregateFailsIfItExists(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	mustExecute(t, repo, "42", Deposit(1))
	a, err := repo.NewAggregate("42")
	require.NoError(t, err)
	_, err = repo.Save(t.Context(), a, Events{Deposited{1}})
	assert.ErrorIs(t, err, journal.ErrConflict)
}

func TestSaveChangesNothingThatTheCallerHolds(t *testing.T) {
	t.Parallel()
	repo := setup(t).baskets(t, repository.Config{})
	text := func(s string) *string { return &s }
	first := mustExecute(t, repo, "42", always[Basket](Added{"pen", 1}, &Labelled{[]string{"a"}}, CouponGiven{text("X")}))
	want := Basket{Items: map[string]int{"pen": 1}, Labels: []string{"a"}, Coupon: text("X")}
	require.Equal(t, want, first.State)

	labels, code := []string{"b"}, text("Y")
	second := mustSave(t, repo, first, aggregate.Events[Basket]{Added{"pen", 1}, &Labelled{labels}, CouponGiven{code}})
	assert.Equal(t, want, first.State, "the aggregate of before")
	assert.Equal(t, Basket{Items: map[string]int{"pen": 2}, Labels: []string{"old"}, Coupon: text("XY")}, second.State)
}

func TestReturnedStateDoesNotShareMemoryWithEvents(t *testing.T) {
	t.Parallel()
	repo := setup(t).baskets(t, repository.Config{})
	labels, code := []string{"a"}, "X"
	a := mustExecute(t, repo, "42", always[Basket](&Labelled{labels}, CouponGiven{&code}))

	labels[0], code = "changed", "changed"
	assert.Equal(t, []string{"a"}, a.State.Labels)
	assert.Equal(t, "X", *a.State.Coupon)
}

func TestSaveWithoutEventsDoesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	a := mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()
	same := mustSave(t, repo, a, nil)
	assert.Equal(t, a, same)
	assert.Empty(t, s.calls.Calls())
}

func TestSaveStartsANewAggregateWithTheZeroState(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	a := mustSave(t, repo, repository.Aggregate[Account]{ID: account("42"), State: Account{1_000_000}}, Events{Deposited{1}})
	assert.Equal(t, 1, a.State.Balance, "no event has led to a million")
}

// A decision must not change the values that its state refers to. If it does, nothing else is
// affected.
func TestADecisionThatChangesItsStateAffectsNothingElse(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]repository.Config{
		"from a snapshot": {Snapshots: repository.Every(1)},
		"by replay":       {Snapshots: repository.Never, IgnoreSnapshots: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			repo := s.baskets(t, config)
			coupon := "X"
			before := mustExecute(t, repo, "42",
				always[Basket](Added{"pen", 1}, Added{"ink", 2}, &Labelled{[]string{"a"}}, CouponGiven{&coupon}))

			var kept []Basket
			ruin := func(b Basket) {
				delete(b.Items, "pen")
				b.Items["stolen"] = 100
				b.Labels[0] = "ruined"
				*b.Coupon = "ruined"
			}
			spoil := func(events ...aggregate.Event[Basket]) aggregate.Decision[Basket] {
				return func(b Basket) (aggregate.Events[Basket], error) {
					require.Equal(t, before.State, b, "each attempt gets the state as it is stored")
					ruin(b)
					kept = append(kept, b)
					return events, nil
				}
			}

			a := mustExecute(t, repo, "42", spoil())
			require.Equal(t, bare(before), bare(a), "without events it is returned as loaded")

			compete(s, 2, func() {
				mustExecute(t, repo, "42", always[Basket](Removed{"what is not there"}))
			})
			a = mustExecute(t, repo, "42", spoil(Added{"cap", 1}))
			require.Len(t, kept, 4, "one decision without events, three attempts at the other")
			for _, b := range kept {
				b.Items["later"] = 100
				ruin(b)
			}
			want := Basket{Items: map[string]int{"pen": 1, "ink": 2, "cap": 1}, Labels: []string{"a"}, Coupon: &coupon}
			assert.Equal(t, want, a.State)
			loaded := mustLoad(t, repo, "42")
			assert.Equal(t, want, loaded.State)
		})
	}
}

// Lossy has a field that JSON does not keep, on purpose.
type Lossy struct{ Sum, Hidden int }

type LossyAdded struct {
	N      int
	Hidden int `json:"-"`
}

func (LossyAdded) EventType() string { return "lossy.added.v1" }
func (e LossyAdded) Apply(l *Lossy)  { l.Sum += e.N; l.Hidden += e.Hidden }

func TestReturnedStateIsTheOneThatAReplayGives(t *testing.T) {
	t.Parallel()
	s := setup(t)
	definition := aggregate.Define[Lossy]("lossy", LossyAdded{})
	a := mustExecute(t, newRepository(t, s, definition, repository.Config{}), "42", always[Lossy](LossyAdded{1, 1}))
	for _, ignore := range []bool{true, false} {
		loaded := mustLoad(t, newRepository(t, s, definition, repository.Config{IgnoreSnapshots: ignore}), "42")
		assert.Equal(t, bare(a), bare(loaded))
	}
}

func TestASaveAfterARepeatedCommandIsNoRepetition(t *testing.T) {
	t.Parallel()
	s := setup(t)
	accounts, baskets := s.accounts(t, repository.Config{}), s.baskets(t, repository.Config{})
	mustExecute(t, accounts, "42", Deposit(1), repository.WithCommandID("c"))
	a := mustExecute(t, accounts, "42", Deposit(1), repository.WithCommandID("c"))
	require.True(t, a.Repeated)
	a = mustSave(t, accounts, a, Events{Deposited{1}})
	assert.False(t, a.Repeated)

	mustExecute(t, baskets, "1", always[Basket](Added{"pear", 1}), repository.WithCommandID("c"))
	b := mustExecute(t, baskets, "1", always[Basket](Added{"pear", 1}), repository.WithCommandID("c"))
	require.True(t, b.Repeated)
	b = mustSave(t, baskets, b, aggregate.Events[Basket]{Added{"pear", 1}})
	assert.False(t, b.Repeated)
}
