package repository_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestTheFirstCommitStoresTheStateWhateverThePolicyWhereTheSchemaWantsIt(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		for name, policy := range map[string]repository.SnapshotPolicy{
			"never":    repository.Never,
			"every":    repository.Every(1000),
			"every 0":  repository.Every(0),
			"function": func(repository.Commit) bool { return false },
		} {
			t.Run(name, func(t *testing.T) {
				repo := s.accounts(t, repository.Config{Snapshots: policy})
				mustExecute(t, repo, name, always(deposits(3)...))
				mustExecute(t, repo, name, always(deposits(3)...))

				head, err := s.journal.Head(t.Context(), account(name))
				require.NoError(t, err)
				assert.EqualValues(t, 6, head.Version)
				if !s.journal.Internal().StateAtFirst {
					require.Nil(t, head.Snapshot, "only the classic schema wants one")
					return
				}
				require.NotNil(t, head.Snapshot)
				assert.EqualValues(t, 3, head.Snapshot.Number)
				assert.JSONEq(t, `{"Balance":3}`, string(head.Snapshot.Payload))
			})
		}
	})
}

func TestSnapshotsAreStoredByTheCommitsThatThePolicyChooses(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		// The number of events, and the number of the snapshot after the commit.
		type commit struct{ events, snapshot int }
		for name, test := range map[string]struct {
			policy  repository.SnapshotPolicy
			commits []commit
		}{
			"every 1":   {repository.Every(1), []commit{{1, 1}, {1, 2}, {3, 5}}},
			"every 5":   {repository.Every(5), []commit{{3, 3}, {1, 3}, {2, 6}, {3, 6}, {1, 10}, {12, 22}, {2, 22}, {1, 25}}},
			"every 100": {repository.Every(100), []commit{{1, 1}, {98, 1}, {2, 101}, {98, 101}, {1, 200}}},
			"a function": {
				func(c repository.Commit) bool { return c.After-c.Before == 2 },
				[]commit{{1, 1}, {1, 1}, {2, 4}, {3, 4}, {2, 9}},
			},
		} {
			t.Run(name, func(t *testing.T) {
				repo := s.accounts(t, repository.Config{Snapshots: test.policy})
				a, err := repo.NewAggregate(name)
				require.NoError(t, err)
				first := test.commits[0].snapshot // as the classic schema requires
				for _, c := range test.commits {
					if !s.journal.Internal().StateAtFirst && c.snapshot == first && name != "every 1" {
						c.snapshot = 0
					}
					a = mustSave(t, repo, a, deposits(c.events))
					require.EqualValues(t, c.snapshot, s.snapshotNumber(t, a.ID), "at version %d", a.Version)
					loaded := mustLoad(t, repo, name)
					require.Equal(t, bare(a), bare(loaded))
					require.EqualValues(t, loaded.Version, loaded.State.Balance)
				}
			})
		}
	})
}

func TestAPolicyFunctionSeesTheCommit(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		var seen []repository.Commit
		repo := s.accounts(t, repository.Config{
			Snapshots: func(c repository.Commit) bool {
				seen = append(seen, c)
				return false
			},
		})
		mustExecute(t, repo, "42", Deposit(5))
		mustExecute(t, repo, "42", always[Account](Deposited{1}, Withdrawn{2}), repository.WithCommandID("pay"))
		if s.journal.Internal().StateAtFirst {
			require.Len(t, seen, 1, "it is not asked about the first commit")
		}
		last := seen[len(seen)-1]
		events := last.Events
		require.Len(t, events, 2)
		assert.Equal(t, repository.Commit{Aggregate: account("42"), Before: 1, After: 3, Events: events, CommandID: "pay"}, last)
		assert.Equal(t, repository.EventInfo{
			Aggregate: account("42"), Number: 3, ID: events[1].ID, Type: "account.withdrawn.v1", Payload: []byte(`{"Amount":2}`),
		}, events[1])
		assert.NotEmpty(t, events[1].ID)
	})
}

func TestAPolicyOnlyChoosesTheCommitsThatStoreASnapshot(t *testing.T) {
	t.Parallel()
	s := setup(t)
	mustExecute(t, s.accounts(t, repository.Config{}), "42", always(deposits(3)...))
	s.calls.Reset()
	never := s.accounts(t, repository.Config{Snapshots: repository.Never})
	mustLoad(t, never, "42")
	assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts(), "Never loads from the snapshot")
	a := mustExecute(t, never, "42", Deposit(1))
	assert.EqualValues(t, 3, s.snapshotNumber(t, a.ID), "Never stores none")

	a = mustExecute(t, s.accounts(t, repository.Config{Snapshots: repository.Every(1), IgnoreSnapshots: true}), "42", Deposit(1))
	assert.EqualValues(t, 5, s.snapshotNumber(t, a.ID), "snapshots that are ignored are stored")
}

func TestIgnoreSnapshotsLoadsWithoutTheSnapshotsThatThereAre(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		mustExecute(t, s.accounts(t, repository.Config{Snapshots: repository.Every(1)}), "42", always(deposits(3)...))
		log := &logger{}
		a := mustLoad(t, s.accounts(t, repository.Config{IgnoreSnapshots: true, SnapshotCodec: refusingSnapshots{}, Logger: log}), "42")
		assert.Equal(t, 3, a.State.Balance)
		log.assertSilent(t)
	})
}

// refusingSnapshots is a codec that can neither encode nor decode.
type refusingSnapshots struct{}

func (refusingSnapshots) EncodeSnapshot(aggregate.ID, uint64, any) ([]byte, error) {
	return nil, errors.New("unwritable")
}

func (refusingSnapshots) DecodeSnapshot(_ []byte, state any) (uint64, error) {
	// The caller must ignore a value that was decoded before the error.
	state.(*Account).Balance = 1_000_000
	return 1, errors.New("unreadable")
}

func TestASnapshotThatCannotBeDecodedIsReportedAndTheJournalReplayed(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		mustExecute(t, s.accounts(t, repository.Config{Snapshots: repository.Every(1)}), "42", always(deposits(3)...))
		log := &logger{}
		a := mustLoad(t, s.accounts(t, repository.Config{SnapshotCodec: refusingSnapshots{}, Logger: log}), "42")
		assert.Equal(t, Account{3}, a.State)
		assert.EqualValues(t, 3, a.Version)
		log.assertReports(t, "Snapshot ignored", "unreadable", "account-42")
	})
}

func TestASnapshotThatCannotBeEncodedIsReportedAndTheCommitWritten(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		log := &logger{}
		repo := s.accounts(t, repository.Config{SnapshotCodec: refusingSnapshots{}, Snapshots: repository.Every(1), Logger: log})
		a := mustExecute(t, repo, "42", always(deposits(3)...))
		assert.Equal(t, 3, a.State.Balance)
		log.assertReports(t, "Snapshot left out", "unwritable", "account-42")
		head, err := s.journal.Head(t.Context(), a.ID)
		require.NoError(t, err)
		assert.Nil(t, head.Snapshot)
		loaded := mustLoad(t, repo, "42")
		assert.Equal(t, bare(a), bare(loaded))
	})
}

// Diary grows beyond the size of an item.
type Diary struct{ Pages []string }

type PageWritten struct{ Text string }

func (PageWritten) EventType() string { return "diary.page_written.v1" }
func (e PageWritten) Apply(d *Diary)  { d.Pages = append(d.Pages, e.Text) }

func TestASnapshotThatIsTooLargeIsReportedAndTheCommitWritten(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		log := &logger{}
		repo := newRepository(t, s, aggregate.Define[Diary]("diary", PageWritten{}), repository.Config{Snapshots: repository.Every(1), Logger: log})
		page := func(n int) aggregate.Event[Diary] {
			return PageWritten{strings.Repeat(fmt.Sprint(n), 150<<10)}
		}
		a := mustExecute(t, repo, "42", always(page(1), page(2)))
		log.assertSilent(t)
		a = mustSave(t, repo, a, aggregate.Events[Diary]{page(3)})
		log.assertReports(t, "Snapshot left out", "the snapshot has", "diary-42")
		assert.EqualValues(t, 2, s.snapshotNumber(t, a.ID), "the one of before still serves")

		loaded := mustLoad(t, repo, "42")
		assert.Equal(t, bare(a), bare(loaded))
		assert.Len(t, loaded.State.Pages, 3)
	})
}

func TestAHeadWithoutASnapshotIsNoObstacle(t *testing.T) {
	t.Parallel()
	s := setup(t)
	testjournal.Append(t, s.journal, storage.Commit{
		Aggregate: account("42"), Events: []storage.Event{{Type: "account.deposited.v1", Payload: []byte(`{"Amount":5}`)}},
	})
	log := &logger{}
	a := mustExecute(t, s.accounts(t, repository.Config{Logger: log}), "42", Withdraw(2))
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{3}, Version: 2}, bare(a))
	log.assertSilent(t)
}

// peerCodec encodes states as another program that shares the tables does: with id, number and
// version inside.
type peerCodec struct{}

type peerState struct {
	ID      string          `json:"id"`
	SeqNr   uint64          `json:"seq_nr"`
	Version uint64          `json:"version"`
	State   json.RawMessage `json:"state"`
}

func (peerCodec) EncodeSnapshot(id aggregate.ID, number uint64, state any) ([]byte, error) {
	raw, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	return json.Marshal(peerState{ID: id.Value, SeqNr: number, Version: number, State: raw})
}

func (peerCodec) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	var stored peerState
	if err := json.Unmarshal(payload, &stored); err != nil {
		return 0, err
	}
	return stored.SeqNr, json.Unmarshal(stored.State, state)
}

func depositedByPeer(*journal.Record) (string, error) { return "account.deposited.v1", nil }

func TestASnapshotCodecIsToldWhatItWrites(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{SnapshotCodec: peerCodec{}, Snapshots: repository.Every(1)})
	a := mustExecute(t, repo, "42", always(deposits(3)...))
	head, err := s.journal.Head(t.Context(), a.ID)
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"42","seq_nr":3,"version":3,"state":{"Balance":3}}`, string(head.Snapshot.Payload))
}

func TestASnapshotOfAnotherProgramServesIfTheCodecFindsItsNumber(t *testing.T) {
	t.Parallel()
	s := setup(t).typing(t, depositedByPeer)
	log := &logger{}
	repo := s.accounts(t, repository.Config{SnapshotCodec: peerCodec{}, Logger: log})
	mustExecute(t, repo, "42", always(deposits(30)...))
	s.peerWrites(t, account("42"), 31, `{"Amount":5}`, `{"id":"42","seq_nr":31,"version":31,"state":{"Balance":35}}`)
	s.calls.Reset()

	a := mustLoad(t, repo, "42")
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{35}, Version: 31}, bare(a))
	assert.Equal(t, map[string]int{"GetItem": 1}, s.calls.Counts(), "no event is after it")

	// The other program did not update its state with its last event.
	s.peerWrites(t, account("42"), 32, `{"Amount":5}`, `{"id":"42","seq_nr":31,"version":31,"state":{"Balance":35}}`)
	a = mustExecute(t, repo, "42", Withdraw(1))
	assert.Equal(t, repository.Aggregate[Account]{ID: account("42"), State: Account{39}, Version: 33}, bare(a))
	log.assertSilent(t)
}

func TestASnapshotThatCannotBePlacedIsIgnored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codec  repository.SnapshotCodec
		state  string
		report string
	}{
		"another program's, without a number": {nil, `{"Balance":1000}`, "no sequence number"},
		"another program's, undecodable":      {nil, `[]`, "decode the state"},
		"beyond the head":                     {peerCodec{}, `{"seq_nr":5,"state":{"Balance":1000}}`, "of event 5, but the head is at 4"},
		"our own with another number":         {wrongNumber{}, "", "of event 2, but it was stored with event 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t).typing(t, depositedByPeer)
			log := &logger{}
			repo := s.accounts(t, repository.Config{SnapshotCodec: test.codec, Logger: log, Snapshots: repository.Every(5)})
			mustExecute(t, repo, "42", always(deposits(3)...))
			want := 3
			if test.state != "" {
				s.peerWrites(t, account("42"), 4, `{"Amount":7}`, test.state)
				want = 10
			}

			a := mustLoad(t, repo, "42")
			assert.Equal(t, want, a.State.Balance)
			log.assertReports(t, "Snapshot ignored", test.report, "account-42")
			if test.state == "" {
				return
			}
			a = mustSave(t, repo, a, Events{Deposited{1}})
			assert.EqualValues(t, 5, s.snapshotNumber(t, a.ID), "the next snapshot is ours again")
		})
	}
}

// wrongNumber is a codec that returns a wrong number.
type wrongNumber struct{ peerCodec }

func (c wrongNumber) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	number, err := c.peerCodec.DecodeSnapshot(payload, state)
	return number - 1, err
}

// Touched is an event of any aggregate. It has no effect.
type Touched[S any] struct{}

func (Touched[S]) EventType() string { return "touched.v1" }
func (Touched[S]) Apply(*S)          {}

// countingCodec counts the states that it encodes.
type countingCodec struct {
	aggregate.Codec
	encoded *atomic.Int32
}

func (c countingCodec) EncodeSnapshot(_ aggregate.ID, _ uint64, state any) ([]byte, error) {
	c.encoded.Add(1)
	return c.Marshal(state)
}

func (c countingCodec) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	return 0, c.Unmarshal(payload, state)
}

func TestOnlyStatesWithPointersAreEncodedToCopyThem(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, test := range map[string]struct {
		copies func(*testing.T, store, string) int
		want   int
	}{
		"a number":            {copies[int], 0},
		"a flat struct":       {copies[struct{ A string }], 0},
		"arrays and times":    {copies[struct{ A [3]struct{ T time.Time } }], 0},
		"a map":               {copies[map[string]int], 1},
		"a slice":             {copies[struct{ A []byte }], 1},
		"a pointer":           {copies[struct{ A *int }], 1},
		"an interface":        {copies[struct{ A any }], 1},
		"a slice in an array": {copies[struct{ A [2]struct{ B []int } }], 1},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, test.copies(t, s, name))
		})
	}
}

// copies returns how many states a Save and an Execute without a snapshot encode.
func copies[S any](t *testing.T, s store, id string) int {
	t.Helper()
	codec := countingCodec{aggregate.JSON, new(atomic.Int32)}
	repo := newRepository(t, s, aggregate.Define[S]("thing", Touched[S]{}), repository.Config{SnapshotCodec: codec, Snapshots: repository.Every(100)})
	a := mustExecute(t, repo, id, always[S](Touched[S]{}))
	codec.encoded.Store(0)
	a = mustSave(t, repo, a, aggregate.Events[S]{Touched[S]{}})
	assert.Zero(t, codec.encoded.Load(), "the commit before has left the state encoded")
	mustSave(t, repo, a, aggregate.Events[S]{Touched[S]{}})
	bySave := codec.encoded.Swap(0)
	mustExecute(t, repo, id, always[S](Touched[S]{}))
	assert.Equal(t, bySave, codec.encoded.Load())
	return int(bySave)
}

// onlySnapshots marks snapshots, and can fail.
type onlySnapshots struct{ fails error }

func (onlySnapshots) Name() string  { return "only-snapshots" }
func (onlySnapshots) Overhead() int { return 1 }

func (e onlySnapshots) Encode(_ context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	return append([]byte("!"), payload...), at.Snapshot, e.fails
}

func (e onlySnapshots) Decode(_ context.Context, _ journal.Place, encoded []byte) ([]byte, error) {
	return encoded[1:], e.fails
}

func TestASnapshotWhoseEncodingCannotBeUndoneIsReportedAndTheJournalReplayed(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	mustExecute(t, openOn(t, db, journal.Config{Encodings: []journal.Encoding{onlySnapshots{}}}).
		accounts(t, repository.Config{}), "42", always(deposits(3)...))
	for name, config := range map[string]journal.Config{
		"lacking": {}, "failing": {Encodings: []journal.Encoding{onlySnapshots{errors.New("no key now")}}},
	} {
		log := &logger{}
		a, err := openOn(t, db, config).accounts(t, repository.Config{Logger: log}).Load(t.Context(), "42")
		require.NoError(t, err, name)
		assert.Equal(t, 3, a.State.Balance)
		log.assertReports(t, "Snapshot ignored", "only-snapshots")
	}
}

func TestASnapshotThatTheTransactionHadNoRoomForComesWithTheNextCommit(t *testing.T) {
	t.Parallel()
	s := openOn(t, dynamotest.New(t), journal.Config{})
	log := &logger{}
	repo := s.accounts(t, repository.Config{Snapshots: repository.Every(10), Logger: log})
	a := mustExecute(t, repo, "42", Deposit(1))
	full := aggregate.Events[Account]{}
	// A few hundred bytes below 4 MB, including their attributes.
	for range 11 {
		full = append(full, Noted{strings.Repeat("x", storage.MaxCommitBytes/11-270)})
	}
	a = mustSave(t, repo, a, full)
	assert.EqualValues(t, 1, s.snapshotNumber(t, a.ID))
	log.assertReports(t, "no room in the transaction")

	a = mustSave(t, repo, a, deposits(1))
	assert.EqualValues(t, 13, s.snapshotNumber(t, a.ID))
}
