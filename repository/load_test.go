package repository_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestLoadGivesTheStateAfterAllEvents(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})
		mustExecute(t, repo, "42", always[Account](Deposited{100}, Withdrawn{30}))

		a := mustLoad(t, repo, "42")
		assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{70}, Version: 2}, bare(a))
	})
}

func TestLoadOfAnAggregateWithoutEventsSaysNotFound(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})

		a, err := repo.Load(t.Context(), "42")
		require.ErrorIs(t, err, journal.ErrNotFound)
		require.EqualError(t, err, `load: read account-42: aggregate not found: "42" of type "account" has no events`)
		assert.Zero(t, a)
	})
}

func TestLoadKeepsAggregatesApartWhoseIDsReadTheSame(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		users := newRepository(t, s, aggregate.Define[Account]("user", Deposited{}), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
		userAccounts := newRepository(t, s, aggregate.Define[Account]("user-account", Deposited{}), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
		mustExecute(t, users, "account-7", always(deposits(20)...))
		mustExecute(t, userAccounts, "7", always(deposits(30)...))

		a := mustLoad(t, users, "account-7")
		assert.Equal(t, 20, a.State.Balance)
		a = mustLoad(t, userAccounts, "7")
		assert.Equal(t, 30, a.State.Balance)
	})
}

func TestLoadReadsAllPagesOfALongHistory(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	const events = 1500
	a, err := repo.NewAggregate("42")
	require.NoError(t, err)
	for a.Version < events {
		commit := make(aggregate.Events[Account], 0, storage.MaxEvents)
		for n := a.Version; n < events && len(commit) < cap(commit); n++ {
			if n%3 == 0 {
				commit = append(commit, Deposited{int(n)})
				continue
			}
			// With these, the average is 1 KB.
			commit = append(commit, Noted{strings.Repeat("x", 1536)})
		}
		a = mustSave(t, repo, a, commit)
	}
	want := 0
	for n := 0; n < events; n += 3 {
		want += n
	}

	s.calls.Reset()
	a = mustLoad(t, repo, "42")
	assert.EqualValues(t, events, a.Version)
	assert.Equal(t, want, a.State.Balance)
	assert.Equal(t, map[string]int{"GetItem": 1, "Query": 2}, s.calls.Counts(), "1.5 MB are two pages")
}

func TestLoadTakesOneGetItemAndTheEventsAfterTheSnapshot(t *testing.T) {
	t.Parallel()
	type calls = map[string]int
	for name, test := range map[string]struct {
		policy repository.SnapshotPolicy
		want   calls
	}{
		"none":               {repository.Every(1), calls{"GetItem": 1}},
		"one":                {repository.Every(19), calls{"GetItem": 2}},
		"a few, by key":      {repository.Every(12), calls{"GetItem": 1, "BatchGetItem": 1}},
		"more, by the index": {repository.Every(11), calls{"GetItem": 1, "Query": 1}},
		"all, by the index":  {repository.Never, calls{"GetItem": 1, "Query": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			repo := s.accounts(t, repository.Config{Snapshots: test.policy})
			a, err := repo.NewAggregate("42")
			require.NoError(t, err)
			for range 20 {
				a = mustSave(t, repo, a, Events{Deposited{1}})
			}
			s.calls.Reset()

			a = mustLoad(t, repo, "42")
			assert.Equal(t, 20, a.State.Balance)
			assert.Equal(t, test.want, s.calls.Counts())
		})
	}
}

func TestLoadReadsByKeyWhatTheIndexHasNotCaughtUpWith(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]func(sortKey string) bool{
		"the last events":      func(k string) bool { return k >= "account-42-35" && len(k) == len("account-42-35") },
		"events in the middle": func(k string) bool { return k == "account-42-7" || k == "account-42-20" || k == "account-42-21" },
		"all events":           func(string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			repo := s.accounts(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
			mustExecute(t, repo, "42", always(deposits(40)...))
			hits := 0
			s.proxy.Inject(dynamotest.Hide(func(item map[string]types.AttributeValue) bool {
				hide := hidden(item["skey"].(*types.AttributeValueMemberS).Value)
				if hide {
					hits++
				}
				return hide
			}), dynamotest.Index("journal-aid-index"))

			a := mustLoad(t, repo, "42")
			assert.Equal(t, 40, a.State.Balance)
			assert.EqualValues(t, 40, a.Version)
			assert.Positive(t, hits, "the index must have been asked")
		})
	}
}

func TestLoadFailsRatherThanGiveAPart(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	mustExecute(t, repo, "42", always(deposits(40)...))
	remove := func(table, sortKey string) {
		_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &table,
			Key: map[string]types.AttributeValue{
				"pkey": &types.AttributeValueMemberS{Value: storage.ShardKey("account", s.journal.Internal().Shard(account("42")))},
				"skey": &types.AttributeValueMemberS{Value: sortKey},
			},
		})
		require.NoError(t, err)
	}

	// The event disappears between the read of the head and the read of the events.
	vanish := dynamotest.Pause(func(context.Context) { remove("journal", "account-42-40") })
	s.proxy.Inject(vanish, dynamotest.On("Query"), dynamotest.Times(1))
	a, err := repo.Load(t.Context(), "42")
	var corrupt *journal.CorruptItemError
	require.ErrorAs(t, err, &corrupt)
	assert.Equal(t, "account-42-40", corrupt.SortKey)
	assert.Zero(t, a)

	remove("snapshot", "account-42-0")
	_, err = repo.Load(t.Context(), "42")
	assert.ErrorIs(t, err, journal.ErrNotFound)
}

func TestLoadNamesTheEventItCannotApply(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		mustExecute(t, s.accounts(t, repository.Config{}), "42", always[Account](Deposited{1}, Withdrawn{1}))

		for name, test := range map[string]struct {
			definition aggregate.Definition[Account]
			number     uint64
			is         any
		}{
			"unknown":   {aggregate.Define[Account]("account", Deposited{}), 2, new(*aggregate.UnknownEventError)},
			"malformed": {Accounts.WithCodec(refusing{aggregate.JSON}), 1, new(*aggregate.MalformedEventError)},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a, err := newRepository(t, s, test.definition, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true}).Load(t.Context(), "42")
				var event *repository.EventError
				require.ErrorAs(t, err, &event)
				assert.Equal(t, account("42"), event.ID)
				assert.Equal(t, test.number, event.Number)
				requireKind(t, err, test.is)
				assert.ErrorContains(t, err, "of account-42")
				assert.Zero(t, a)
			})
		}
	})
}

// refusing is a codec that cannot decode anything.
type refusing struct{ aggregate.Codec }

func (refusing) Unmarshal([]byte, any) error { return errors.New("unreadable") }

func TestLoadAsksForTheTypeOfAnEventThatHasNone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	mustExecute(t, s.accounts(t, repository.Config{}), "42", Deposit(1))
	s.peerWrites(t, account("42"), 2, `{"Amount":5}`, `{}`)

	_, err := s.accounts(t, repository.Config{}).Load(t.Context(), "42")
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))

	a := mustLoad(t, s.typing(t, func(r *journal.Record) (string, error) {
		assert.EqualValues(t, 2, r.Number, "events that have a type need no other")
		return "account.deposited.v1", nil
	}).accounts(t, repository.Config{}), "42")
	assert.Equal(t, 6, a.State.Balance)

	illegible := errors.New("illegible")
	_, err = s.typing(t, func(*journal.Record) (string, error) { return "", illegible }).
		accounts(t, repository.Config{}).Load(t.Context(), "42")
	require.ErrorAs(t, err, new(*journal.EventTypeError))
	require.ErrorIs(t, err, illegible)
	assert.EqualError(t, err, "load: determine the type of event 2 of account-42: illegible")
}

func TestEventsCarryIDsAndTheMetadataOfTheContext(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		ids := 0
		j := testjournal.Open(t, s.client, journal.Config{NewID: func() string {
			ids++
			return fmt.Sprint("id ", ids)
		}})
		repo := testjournal.Repository(t, j, Accounts, repository.Config{})
		ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{aggregate.CorrelationIDKey: "request-1"})
		_, err := repo.Execute(ctx, "42", always[Account](Deposited{1}, Deposited{2}))
		require.NoError(t, err)

		records := s.records(t, account("42"))
		require.Len(t, records, 2)
		for _, r := range records {
			assert.Equal(t, "account.deposited.v1", r.EventType)
			assert.Equal(t, aggregate.Metadata{"correlation_id": "request-1"}, r.Metadata)
			assert.Regexp(t, "^id ", r.EventID, "it comes from the journal's NewID")
		}
		assert.NotEqual(t, records[0].EventID, records[1].EventID)
		assert.JSONEq(t, `{"Amount":2}`, string(records[1].Payload))
		assert.Equal(t, records[0].CommitID, records[1].CommitID, "they are one commit")
	})
}
