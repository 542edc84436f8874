package repository_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	j := &journal.Journal{} // New makes no request
	for name, test := range map[string]struct {
		journal    *journal.Journal
		definition aggregate.Definition[Account]
		config     repository.Config
		is         any
		text       string
	}{
		"no journal":            {nil, Accounts, repository.Config{}, new(*repository.ConfigError), "journal.Open"},
		"no definition":         {j, aggregate.Definition[Account]{}, repository.Config{}, new(*aggregate.DefinitionError), "aggregate.Define"},
		"faulty definition":     {j, aggregate.Define[Account]("", Deposited{}), repository.Config{}, new(*aggregate.DefinitionError), "type is empty"},
		"unknown UnknownEvents": {j, Accounts, repository.Config{UnknownEvents: 2}, new(*repository.ConfigError), "UnknownEvents is 2: use FailOnUnknown or SkipUnknown"},
		"negative attempts":     {j, Accounts, repository.Config{MaxAttempts: -1}, new(*repository.ConfigError), "MaxAttempts is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, err := repository.New(test.journal, test.definition, test.config)
			requireKind(t, err, test.is)
			assert.ErrorContains(t, err, test.text)
			assert.Nil(t, repo)
		})
	}
}

func TestIDsThatCannotBeKeysAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	for name, id := range map[string]string{
		"empty": "", "not UTF-8": "\xff", "too long": strings.Repeat("x", 1024),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := repo.Load(t.Context(), id)
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
			_, err = repo.Execute(t.Context(), id, Deposit(1))
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
			_, err = repo.NewAggregate(id)
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
			_, err = repo.Save(t.Context(), repository.Aggregate[Account]{ID: account(id)}, Events{Deposited{1}})
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		})
	}
	_, err := repo.Save(t.Context(), repository.Aggregate[Account]{ID: basket("42")}, Events{Deposited{1}})
	require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	assert.ErrorContains(t, err, `for aggregates of type "account"`)
	assert.Empty(t, s.calls.Calls())
}

// Unreadable can be encoded but not decoded.
type Unreadable struct{}

func (Unreadable) EventType() string            { return "account.unreadable.v1" }
func (Unreadable) Apply(*Account)               {}
func (*Unreadable) UnmarshalJSON([]byte) error  { return errors.New("cannot be read") }
func (Unreadable) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

var _ json.Unmarshaler = (*Unreadable)(nil)

// Undefined is missing in the definition.
type Undefined struct{}

func (Undefined) EventType() string { return "account.undefined.v1" }
func (Undefined) Apply(*Account)    {}

func TestEventsThatCannotBeStoredAreRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := newRepository(t, s, aggregate.Define[Account]("account", Deposited{}, Noted{}, Unreadable{}), repository.Config{})
	a := mustExecute(t, repo, "42", Deposit(1))
	s.calls.Reset()

	long := Noted{strings.Repeat("x", 400<<10)}
	for name, test := range map[string]struct {
		events aggregate.Events[Account]
		is     any
		text   string
	}{
		"nil":          {aggregate.Events[Account]{Deposited{1}, nil}, new(*aggregate.UnencodableEventError), "event 2 of the commit"},
		"nil pointer":  {aggregate.Events[Account]{(*Deposited)(nil)}, new(*aggregate.UnencodableEventError), "event 1 of the commit"},
		"a pointer":    {aggregate.Events[Account]{&Deposited{1}}, new(*aggregate.UnencodableEventError), "*repository_test.Deposited"},
		"undefined":    {aggregate.Events[Account]{Undefined{}}, new(*aggregate.UnknownEventError), "account.undefined.v1"},
		"unreadable":   {aggregate.Events[Account]{Unreadable{}}, new(*aggregate.MalformedEventError), "could not be read back"},
		"not UTF-8":    {aggregate.Events[Account]{Noted{"\xff"}}, new(*aggregate.UnencodableEventError), "UTF-8"},
		"one too many": {deposits(100), new(*journal.TooLargeError), "100 events"},
		"too large":    {aggregate.Events[Account]{long}, new(*journal.TooLargeError), "account-42"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := repo.Execute(t.Context(), "42", always(test.events...))
			requireKind(t, err, test.is)
			assert.ErrorContains(t, err, test.text)
			same, err := repo.Save(t.Context(), a, test.events)
			requireKind(t, err, test.is)
			assert.ErrorContains(t, err, test.text)
			assert.Equal(t, a, same)
		})
	}
	assert.Empty(t, s.calls.Calls("TransactWriteItems"))
}

func TestANilDecisionIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", nil)
	require.ErrorIs(t, err, repository.ErrNilDecision)
	assert.Empty(t, s.calls.Calls())
}

func TestANilOptionAddsNothingAndNilWritesAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	a := mustExecute(t, repo, "42", Deposit(1), nil, repository.WithCommandID("c"), nil)
	s.calls.Reset()

	_, err := repo.Execute(t.Context(), "42", always[Account](), repository.WithWrites(nil))
	require.ErrorIs(t, err, journal.ErrInvalidCommit)
	require.ErrorContains(t, err, "the function passed to WithWrites is nil")
	same, err := repo.Save(t.Context(), a, deposits(1), repository.WithWrites(nil))
	require.ErrorIs(t, err, journal.ErrInvalidCommit)
	assert.Equal(t, a, same)
	assert.Empty(t, s.calls.Calls())
}

// Ratio can reach a state that JSON cannot encode.
type Ratio struct {
	Sum, Count float64
	Mean       []float64
}

type Measured struct{ Sum, Count int }

func (Measured) EventType() string { return "ratio.measured.v1" }
func (e Measured) Apply(r *Ratio) {
	r.Sum, r.Count = r.Sum+float64(e.Sum), r.Count+float64(e.Count)
	r.Mean = []float64{r.Sum / r.Count}
}

func TestAStateThatCannotBeCopiedIsAnErrorAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	log := &logger{}
	repo := newRepository(t, s, aggregate.Define[Ratio]("ratio", Measured{}), repository.Config{Logger: log})
	a, err := repo.Execute(t.Context(), "42", always[Ratio](Measured{0, 0}))
	require.NoError(t, err, "the journal can be replayed without a snapshot")
	log.assertReports(t, "Snapshot left out", "NaN")
	s.calls.Reset()

	var unencodable *repository.UnencodableStateError
	_, err = repo.Execute(t.Context(), "42", always[Ratio](Measured{1, 1}))
	require.ErrorAs(t, err, &unencodable)
	require.ErrorAs(t, err, new(*repository.UnencodableStateError))
	assert.Equal(t, a.ID, unencodable.ID)
	_, err = repo.Save(t.Context(), a, aggregate.Events[Ratio]{Measured{1, 1}})
	require.ErrorAs(t, err, new(*repository.UnencodableStateError))
	assert.Empty(t, s.calls.Calls("TransactWriteItems"))

	a = mustLoad(t, repo, "42")
	assert.True(t, math.IsNaN(a.State.Mean[0]))
}
