package repository_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Frozen is an event that only a newer program knows.
type Frozen struct{}

func (Frozen) EventType() string { return "account.frozen.v1" }
func (Frozen) Apply(a *Account)  { a.Balance = 0 }

var newerAccounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{}, Noted{}, Frozen{})

// NewlyLabelled is an event that only a newer program knows, for a state that an assignment would
// share.
type NewlyLabelled struct{}

func (NewlyLabelled) EventType() string { return "basket.newly_labelled.v1" }
func (NewlyLabelled) Apply(*Basket)     {}

func TestAnUnknownEventFailsTheLoad(t *testing.T) {
	t.Parallel()
	s := setup(t)
	mustExecute(t, newRepository(t, s, newerAccounts, repository.Config{Snapshots: repository.Every(100)}), "42", always[Account](Deposited{1}))
	mustExecute(t, newRepository(t, s, newerAccounts, repository.Config{Snapshots: repository.Never}), "42", always[Account](Frozen{}))

	a, err := s.accounts(t, repository.Config{}).Load(t.Context(), "42")
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
	var failed *repository.EventError
	require.ErrorAs(t, err, &failed)
	assert.EqualValues(t, 2, failed.Number)
	assert.Zero(t, a)
}

func TestATolerantLoadSkipsUnknownEventsAndReportsThemOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	newer := newRepository(t, s, newerAccounts, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	for _, event := range []aggregate.Event[Account]{Deposited{5}, Frozen{}, Deposited{3}, Frozen{}} {
		mustExecute(t, newer, "4\n2", always(event))
	}

	log := &infoLogger{}
	a := mustLoad(t, s.accounts(t, repository.Config{UnknownEvents: repository.SkipUnknown, Logger: log}), "4\n2")
	assert.EqualValues(t, 4, a.Version, "the version counts them")
	assert.Equal(t, 8, a.State.Balance, "the state does not show them")
	assert.True(t, a.Partial())
	require.Len(t, log.infos, 1)
	for _, part := range []string{`"account-4\n2"`, "skipped:2", "first:2", "first_type:account.frozen.v1", "version:4"} {
		assert.Contains(t, log.infos[0], part)
	}
}

func TestATolerantLoadIsSilentWhereAllEventsAreKnown(t *testing.T) {
	t.Parallel()
	s := setup(t)
	log := &infoLogger{}
	repo := s.accounts(t, repository.Config{UnknownEvents: repository.SkipUnknown, Snapshots: repository.Never, IgnoreSnapshots: true, Logger: log})
	mustExecute(t, repo, "42", Deposit(5))

	a := mustLoad(t, repo, "42")
	assert.False(t, a.Partial())
	assert.Empty(t, log.infos)
}

func TestAStateWithSkippedEventsNeverBecomesASnapshot(t *testing.T) {
	t.Parallel()
	s := setup(t)
	everyCommit := repository.Config{Snapshots: repository.Every(1), UnknownEvents: repository.SkipUnknown}
	newer := newRepository(t, s, newerAccounts, repository.Config{Snapshots: repository.Every(100)})
	mustExecute(t, newer, "42", always[Account](Deposited{5}))
	mustExecute(t, newer, "42", always[Account](Frozen{}))

	tolerant := s.accounts(t, everyCommit)
	a := mustExecute(t, tolerant, "42", Deposit(1))
	assert.True(t, a.Partial(), "after Execute")
	require.EqualValues(t, 1, s.snapshotNumber(t, a.ID))
	for range 2 {
		a = mustSave(t, tolerant, a, Events{Deposited{1}})
		assert.True(t, a.Partial(), "after Save")
		require.EqualValues(t, 1, s.snapshotNumber(t, a.ID))
	}
	a = mustLoad(t, tolerant, "42")
	mustSave(t, tolerant, a, Events{Deposited{1}})
	require.EqualValues(t, 1, s.snapshotNumber(t, a.ID))

	a = mustLoad(t, newer, "42")
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{4}, Version: 6}, bare(a), "who knows all events is not misled")
}

func TestAStateWithSkippedEventsIsCopiedAsSuch(t *testing.T) {
	t.Parallel()
	s := setup(t)
	newer := newRepository(t, s, aggregate.Define[Basket]("basket", Added{}, NewlyLabelled{}), repository.Config{Snapshots: repository.Every(100)})
	for _, event := range []aggregate.Event[Basket]{Added{"apple", 1}, NewlyLabelled{}} {
		mustExecute(t, newer, "7", always(event))
	}
	tolerant := s.baskets(t, repository.Config{Snapshots: repository.Every(1), UnknownEvents: repository.SkipUnknown})
	a := mustLoad(t, tolerant, "7")
	for range 2 {
		a = mustSave(t, tolerant, a, aggregate.Events[Basket]{Added{"pear", 1}})
	}
	assert.True(t, a.Partial())
	assert.EqualValues(t, 1, s.snapshotNumber(t, a.ID))
}

func TestAStateWithSkippedEventsIsKeptAsSuch(t *testing.T) {
	t.Parallel()
	s := setup(t)
	newer := newRepository(t, s, newerAccounts, repository.Config{Snapshots: repository.Every(100)})
	for _, event := range []aggregate.Event[Account]{Deposited{5}, Frozen{}} {
		mustExecute(t, newer, "42", always(event))
	}
	log := &infoLogger{}
	tolerant := s.accounts(t, repository.Config{
		Cache: 10, SnapshotSchema: 1, Snapshots: repository.Every(1), UnknownEvents: repository.SkipUnknown, Logger: log,
	})
	for range 2 {
		mustLoad(t, tolerant, "42")
	}
	assert.Len(t, log.infos, 1, "the second load read no events")
	mustExecute(t, newer, "42", always[Account](Frozen{}))
	for range 2 {
		a := mustExecute(t, tolerant, "42", Deposit(1))
		assert.True(t, a.Partial())
		assert.EqualValues(t, 1, s.snapshotNumber(t, a.ID), "nor is a snapshot of an older schema replaced")
	}
	assert.Len(t, log.infos, 2)
}

func TestALoadOfThePastIsPartialOnlyBehindAnUnknownEvent(t *testing.T) {
	t.Parallel()
	s := setup(t)
	mustExecute(t, newRepository(t, s, newerAccounts, repository.Config{}), "42", always[Account](Deposited{5}, Frozen{}, Deposited{3}))
	tolerant := s.accounts(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true, UnknownEvents: repository.SkipUnknown})
	for number, partial := range map[uint64]bool{1: false, 2: true, 3: true} {
		a := mustLoadAtVersion(t, tolerant, "42", number)
		assert.Equal(t, partial, a.Partial(), "event %d", number)
		assert.Equal(t, number, a.Version)
	}
}

func TestATolerantLoadStillFailsOnWhatIsNotMerelyNew(t *testing.T) {
	t.Parallel()
	s := setup(t)
	broken := Accounts.WithUpcasters(aggregate.UpcastRaw("account.old.v0", func([]byte) ([]aggregate.EncodedEvent, error) {
		return []aggregate.EncodedEvent{{Type: "account.frozen.v1", Payload: []byte("{}")}}, nil
	}))
	for name, test := range map[string]struct {
		stored     storage.Event
		definition aggregate.Definition[Account]
		eventType  func(*journal.Record) (string, error)
		is         any
	}{
		"malformed":                              {storage.Event{Type: "account.deposited.v1", Payload: []byte("?")}, Accounts, nil, new(*aggregate.MalformedEventError)},
		"an upcaster that gives an unknown type": {storage.Event{Type: "account.old.v0", Payload: []byte("{}")}, broken, nil, new(*aggregate.UpcastError)},
		"no type":                                {storage.Event{Type: "-", Payload: []byte("{}")}, Accounts, nil, new(*aggregate.UnknownEventError)},
		"a type that cannot be told": {
			storage.Event{Type: "-", Payload: []byte("{}")},
			Accounts,
			func(*journal.Record) (string, error) {
				return "", &aggregate.UnknownEventError{EventType: "told by EventType"}
			}, new(*aggregate.UnknownEventError),
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := newRepository(t, s.typing(t, test.eventType), test.definition, repository.Config{
				UnknownEvents: repository.SkipUnknown, Snapshots: repository.Never, IgnoreSnapshots: true,
			})
			a := mustExecute(t, repo, name, Deposit(1))
			if test.stored.Type == "-" {
				s.peerWrites(t, a.ID, 2, string(test.stored.Payload), "{}")
			} else {
				testjournal.Append(t, s.journal, storage.Commit{Aggregate: a.ID, Expected: 1, Events: []storage.Event{test.stored}})
			}
			_, err := repo.Load(t.Context(), name)
			requireKind(t, err, test.is)
			assert.ErrorContains(t, err, "event 2 of "+a.ID.String())
		})
	}
}

func TestOneStoredEventIsOneVersionWhateverItBecomes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	evolved := Accounts.WithUpcasters(
		aggregate.Split("account.moved.v0", func(old struct{ In, Out int }) (aggregate.Events[Account], error) {
			return aggregate.Events[Account]{Deposited{old.In}, Withdrawn{old.Out}}, nil
		}),
		aggregate.Drop("account.viewed.v0"),
		aggregate.Rename("account.paid.v0", "account.deposited.v1"),
	)
	testjournal.Append(t, s.journal, storage.Commit{Aggregate: account("42"), Events: []storage.Event{
		{Type: "account.paid.v0", Payload: []byte(`{"Amount":10}`)},
		{Type: "account.viewed.v0", Payload: []byte(`?`)},
		{Type: "account.moved.v0", Payload: []byte(`{"In":5,"Out":3}`)},
		{Type: "account.viewed.v0", Payload: []byte(`?`)},
	}})

	log := &infoLogger{}
	repo := newRepository(t, s, evolved, repository.Config{Snapshots: repository.Every(1), Logger: log})
	a := mustLoad(t, repo, "42")
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{12}, Version: 4}, bare(a))

	a = mustExecute(t, repo, "42", Withdraw(12))
	assert.EqualValues(t, 5, a.Version)
	assert.EqualValues(t, 5, s.snapshotNumber(t, a.ID), "what upcasters gave may become a snapshot")
	loaded := mustLoad(t, repo, "42")
	assert.Equal(t, a, loaded)
	assert.Empty(t, log.infos, "a dropped event is no unknown one")
}

func TestAFailedUpcastFailsTheLoadWithTheEventsPlace(t *testing.T) {
	t.Parallel()
	s := setup(t)
	refused := errors.New("no such currency")
	evolved := Accounts.WithUpcasters(aggregate.Split("account.paid.v0", func(struct{}) ([]Deposited, error) { return nil, refused }))
	testjournal.Append(t, s.journal, storage.Commit{Aggregate: account("42"), Events: []storage.Event{
		{Type: "account.deposited.v1", Payload: []byte(`{"Amount":10}`)},
		{Type: "account.paid.v0", Payload: []byte(`{}`)},
	}})

	_, err := newRepository(t, s, evolved, repository.Config{}).Execute(t.Context(), "42", Deposit(1))
	require.ErrorIs(t, err, refused)
	require.ErrorAs(t, err, new(*aggregate.UpcastError))
	var failed *repository.EventError
	require.ErrorAs(t, err, &failed)
	assert.EqualValues(t, 2, failed.Number)
}

// infoLogger collects the information that is logged.
type infoLogger struct {
	watermill.NopLogger
	infos []string
}

func (l *infoLogger) Info(msg string, fields watermill.LogFields) {
	l.infos = append(l.infos, fmt.Sprintf("%s %v", msg, fields))
}
