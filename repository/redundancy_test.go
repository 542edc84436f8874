package repository_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// redundant returns the numbers of the rows that contain a state, except the head.
func (s store) redundant(t *testing.T, id string) (numbers []uint64) {
	t.Helper()
	for n := uint64(1); n < 100; n++ {
		if row := s.item(t, "snapshot", account(id), strconv.FormatUint(n, 10)); row != nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func TestRedundantSnapshotsAreKeptUpToTheirCountAndTheOldestGoFirst(t *testing.T) {
	t.Parallel()
	for keep, want := range map[int][]uint64{0: {6}, 1: {6}, 3: {4, 5, 6}, 100: {1, 2, 3, 4, 5, 6}} {
		eachLayoutInFakeTime(t, func(t *testing.T, s store) {
			repo := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: keep}})

			for range 6 {
				mustExecute(t, repo, "42", Deposit(1))
			}

			assert.Equal(t, want, s.redundant(t, "42"), "of 6 with Keep %d", keep)
			assert.EqualValues(t, 6, s.snapshotNumber(t, account("42")))
		})
	}
}

func TestACommitThatStoresNoSnapshotMakesNoRequestForThoseThatAreKept(t *testing.T) {
	t.Parallel()
	db, s := onDynamotest(t)
	repo := s.accounts(t, repository.Config{Snapshots: repository.Every(10), Redundancy: &repository.Redundancy{}, Cache: 10})
	for range 2 {
		mustExecute(t, repo, "42", always(deposits(10)...))
	}
	calls := db.Record()

	mustExecute(t, repo, "42", Deposit(1))
	require.Len(t, calls.Calls(), 1)
	assert.Equal(t, "TransactWriteItems", calls.Calls()[0].Operation)
}

func TestAFailedRemovalIsNoErrorAndALaterCommitMakesUpForIt(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, s := onDynamotest(t)
		log := &logger{}
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{}, Logger: log})
		fault := db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not allowed"}), dynamotest.On("BatchWriteItem"))
		for range 3 {
			mustExecute(t, repo, "42", Deposit(1))
		}
		assert.Equal(t, []uint64{2, 3}, s.redundant(t, "42"), "the third commit deleted what the second should have")
		require.Len(t, log.errors, 2)
		assert.Contains(t, log.errors[0], "Redundant snapshots not removed")
		fault.Remove()

		mustExecute(t, repo, "42", Deposit(1))
		assert.Equal(t, []uint64{4}, s.redundant(t, "42"))
	})
}

func TestNoRedundantSnapshotIsForgottenWhenSeveralWritersKeepStates(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, func(t *testing.T, s store) {
		config := repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 2}, Cache: 10}
		writers := []*repository.Repository[Account]{s.accounts(t, config), open(t, s.client).accounts(t, config)}
		for i := range 12 {
			mustExecute(t, writers[i/3%2], "42", Deposit(1))
		}
		assert.Equal(t, []uint64{11, 12}, s.redundant(t, "42"))
	})
}

func TestFewerAreKeptOnceTheCountIsLowered(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, func(t *testing.T, s store) {
		many := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 80}})
		for range 80 {
			mustExecute(t, many, "42", Deposit(1))
		}
		few := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 2}})

		mustExecute(t, few, "42", Deposit(1))
		assert.Equal(t, []uint64{80, 81}, s.redundant(t, "42"))
	})
}

func TestWithATimeToLiveDynamoDBDeletesAndNothingElse(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := openOn(t, db, journal.Config{Now: db.Clock().Now})
	repo := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 2, TTL: time.Hour}})
	for range 4 {
		mustExecute(t, repo, "42", Deposit(1))
	}
	require.Equal(t, []uint64{1, 2, 3, 4}, s.redundant(t, "42"))

	db.Clock().Advance(100 * time.Hour)

	assert.Empty(t, s.redundant(t, "42"))
	a, err := repo.Load(t.Context(), "42")
	require.NoError(t, err, "the head does not expire")
	assert.Equal(t, 4, a.State.Balance)
	a, err = repo.LoadAtVersion(t.Context(), "42", 3)
	require.NoError(t, err, "without its snapshot the events are replayed")
	assert.Equal(t, 3, a.State.Balance)
}

func TestAnAggregateIsLoadedAsItWasAfterEachEvent(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s := openOn(t, dynamotest.New(t), journal.Config{Layout: layout})
		random := rand.New(rand.NewPCG(7, 0))
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(5), Redundancy: &repository.Redundancy{Keep: 4}})
		balances := []int{0}
		for len(balances) < 60 {
			events := make(aggregate.Events[Account], 1+random.IntN(4))
			for i := range events {
				amount := random.IntN(100)
				events[i] = Deposited{amount}
				balances = append(balances, balances[len(balances)-1]+amount)
			}
			mustExecute(t, repo, "42", always(events...))
		}
		for number, balance := range balances {
			a := mustLoadAtVersion(t, repo, "42", uint64(number))
			require.EqualValues(t, number, a.Version)
			require.Equal(t, balance, a.State.Balance, "after event %d", number)
		}
		_, err := repo.LoadAtVersion(t.Context(), "42", uint64(len(balances)))
		var missing *repository.NoSuchEventError
		require.ErrorAs(t, err, new(*repository.NoSuchEventError))
		require.ErrorAs(t, err, &missing)
		assert.EqualValues(t, len(balances)-1, missing.Version)
	})
}

func TestLoadAtVersionStartsFromTheLatestRedundantSnapshotThatIsNotLater(t *testing.T) {
	t.Parallel()
	db, s := onDynamotest(t)
	repo := s.accounts(t, repository.Config{Snapshots: repository.Every(50), Redundancy: &repository.Redundancy{Keep: 10}})
	for range 6 {
		mustExecute(t, repo, "42", always(deposits(50)...))
	}
	calls := db.Record()

	a := mustLoadAtVersion(t, repo, "42", 203)
	assert.Equal(t, 203, a.State.Balance)
	operations := []string{}
	for _, call := range calls.Calls() {
		operations = append(operations, call.Operation)
	}
	assert.Equal(t, []string{"GetItem", "GetItem", "BatchGetItem"}, operations, "head, snapshot 200, events 201 to 203")
}

func TestASnapshotThatAPeerKeptIsReadByTheCodecOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codec   repository.SnapshotCodec
		balance int
	}{
		"a codec that knows it": {peerCodec{}, 1003 + 1}, "one that does not": {nil, 4},
	} {
		s := setup(t)
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(5), SnapshotCodec: test.codec})
		for range 6 {
			mustExecute(t, repo, "42", Deposit(1))
		}
		s.peerKeeps(t, account("42"), 3, `{"id":"42","seq_nr":3,"version":3,"state":{"Balance":1003}}`)

		a, err := repo.LoadAtVersion(t.Context(), "42", 4)

		require.NoError(t, err, name)
		assert.EqualValues(t, 4, a.Version)
		assert.Equal(t, test.balance, a.State.Balance, name)
	}
}

func TestAHeadThatWasPutBackDoesNotBringItsOldStateBack(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s := openOn(t, dynamotest.New(t), journal.Config{Layout: layout})
		frequent := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 9}})
		for range 5 {
			mustExecute(t, frequent, "42", Deposit(1000))
		}
		s.putBack(t, account("42"), 3, 5)
		rare := s.accounts(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
		for range 4 {
			mustExecute(t, rare, "42", Deposit(1))
			for _, repo := range []*repository.Repository[Account]{rare, frequent} {
				a := mustLoad(t, repo, "42")
				require.Equal(t, 3000+int(a.Version)-3, a.State.Balance, "%s at version %d", layout, a.Version)
				a = mustLoadAtVersion(t, repo, "42", a.Version)
				require.Equal(t, 3000+int(a.Version)-3, a.State.Balance)
			}
		}
	}
}

func TestAnAggregateIsLoadedAsItWasAtATime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	s := openOn(t, dynamotest.New(t), journal.Config{Now: func() time.Time { return now }})
	repo := s.accounts(t, repository.Config{})
	for range 30 {
		mustExecute(t, repo, "42", Deposit(1))
		now = now.Add(time.Minute)
	}
	for minutes, want := range map[int]int{-1: 0, 0: 1, 1: 2, 17: 18, 29: 30, 1000: 30} {
		a, err := repo.LoadAtTime(t.Context(), "42", start.Add(time.Duration(minutes)*time.Minute))
		require.NoError(t, err)
		assert.Equal(t, want, a.State.Balance, "after %d minutes", minutes)
		a, err = repo.LoadAtTime(t.Context(), "42", start.Add(time.Duration(minutes)*time.Minute+time.Second))
		require.NoError(t, err)
		assert.Equal(t, want, a.State.Balance, "a second later")
	}
}

func TestASnapshotOfAnEarlierSchemaIsNotReadAndTheNextCommitReplacesIt(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		old := s.accounts(t, repository.Config{SnapshotSchema: 1, Snapshots: func(c repository.Commit) bool { return c.Before == 0 }})
		mustExecute(t, old, "42", always(deposits(3)...))
		log := &logger{}
		repo := s.accounts(t, repository.Config{SnapshotSchema: 2, SnapshotCodec: doubling{}, Logger: log, Snapshots: repository.Never})

		a := mustLoad(t, repo, "42")
		assert.Equal(t, 3, a.State.Balance, "the old snapshot would read as 6")
		assert.EqualValues(t, 3, s.snapshotNumber(t, a.ID))
		a = mustSave(t, repo, a, Events{Deposited{1}})
		assert.EqualValues(t, 4, s.snapshotNumber(t, a.ID), "no policy would have chosen this commit")
		mustSave(t, repo, a, Events{Deposited{1}})
		assert.EqualValues(t, 4, s.snapshotNumber(t, a.ID), "once is enough")

		a = mustExecute(t, old, "42", Deposit(1))
		assert.Equal(t, 6, a.State.Balance)
		assert.EqualValues(t, 4, s.snapshotNumber(t, a.ID), "the older program leaves the newer one's snapshot in its place")
		log.assertSilent(t)
	})
}

// doubling encodes half of a balance, so it misreads states that others have written.
type doubling struct{}

func (doubling) EncodeSnapshot(_ aggregate.ID, _ uint64, state any) ([]byte, error) {
	return fmt.Appendf(nil, `{"Half":%d}`, state.(*Account).Balance), nil
}

func (doubling) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	var written struct{ Half, Balance int }
	err := aggregate.JSON.Unmarshal(payload, &written)
	state.(*Account).Balance = written.Half + 2*written.Balance
	return 0, err
}

func TestADeletedAggregateIsNotLoadedAndTakesNoCommand(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{Cache: 10})
		a := mustExecute(t, repo, "42", always(deposits(3)...))
		require.NoError(t, s.journal.Delete(t.Context(), a.ID, a.Version, journal.RemoveOptions{}))

		for what, do := range map[string]func() error{
			"Load":          func() error { _, err := repo.Load(t.Context(), "42"); return err },
			"LoadAtVersion": func() error { _, err := repo.LoadAtVersion(t.Context(), "42", 1); return err },
			"Execute":       func() error { _, err := repo.Execute(t.Context(), "42", Deposit(1)); return err },
			"Save":          func() error { _, err := repo.Save(t.Context(), a, Events{Deposited{1}}); return err },
		} {
			var deleted *journal.DeletedError
			require.ErrorAs(t, do(), &deleted, what)
			assert.EqualValues(t, 3, deleted.Version)
		}
	})
}

func TestATruncatedAggregateGoesOnFromItsSnapshot(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(10)})
		for range 3 {
			mustExecute(t, repo, "42", always(deposits(9)...))
		}
		require.ErrorIs(t, s.journal.Truncate(t.Context(), account("42"), 29, journal.RemoveOptions{}), journal.ErrNotCovered)
		require.NoError(t, s.journal.Truncate(t.Context(), account("42"), 28, journal.RemoveOptions{}))

		a := mustExecute(t, repo, "42", Deposit(1))
		assert.EqualValues(t, 28, a.Version)
		assert.Equal(t, 28, a.State.Balance)
		_, err := repo.LoadAtVersion(t.Context(), "42", 20)
		require.ErrorAs(t, err, new(*journal.TruncatedError))
		_, err = s.accounts(t, repository.Config{SnapshotSchema: 9}).Load(t.Context(), "42")
		require.ErrorAs(t, err, new(*journal.TruncatedError), "not a state without the first 27 events")
	})
}

func TestTheRemovalOfRedundantSnapshotsHoldsACommitUpForASecondAtMost(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t)
		log := &logger{}
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{}, Logger: log})
		mustExecute(t, repo, "42", Deposit(1))
		var waited time.Duration
		s.proxy.Inject(dynamotest.Pause(func(ctx context.Context) {
			start := time.Now()
			<-ctx.Done()
			waited = time.Since(start)
		}), dynamotest.On("BatchWriteItem"))

		a := mustExecute(t, repo, "42", Deposit(1))
		assert.EqualValues(t, 2, a.Version)
		assert.Positive(t, waited)
		assert.LessOrEqual(t, waited, time.Second, "the request must end with a limit of its own")
		log.assertReports(t, "Redundant snapshots not removed", "deadline exceeded")
	})
}

func TestAListOfRedundantSnapshotsThatIsNotKnownDoesNotStayUnknown(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, func(t *testing.T, s store) {
		// This repository does not know the list.
		a := mustExecute(t, s.accounts(t, repository.Config{}), "42", Deposit(1))
		repo := s.accounts(t, repository.Config{Cache: 10, Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 2}})
		mustSave(t, repo, a, Events{Deposited{1}})

		for range 8 {
			mustExecute(t, repo, "42", Deposit(1))
		}

		assert.Equal(t, []uint64{9, 10}, s.redundant(t, "42"))
		head, err := s.journal.Head(t.Context(), account("42"))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(head.Redundant), 3, "of %v", head.Redundant)
	})
}

// picky is a codec that fails for balances over 4.
type picky struct {
	number uint64
	err    error
}

func (picky) EncodeSnapshot(_ aggregate.ID, _ uint64, state any) ([]byte, error) {
	return aggregate.JSON.Marshal(state)
}

func (p picky) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	if err := aggregate.JSON.Unmarshal(payload, state); err != nil || state.(*Account).Balance <= 4 {
		return 0, err
	}
	return p.number, p.err
}

func TestLoadAtVersionPassesOverSnapshotsThatItCannotUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema uint64 // of the snapshots from event 5
		codec  repository.SnapshotCodec
	}{
		"of another schema":           {1, nil},
		"that cannot be decoded":      {0, picky{err: errors.New("unreadable")}},
		"that are in the wrong place": {0, picky{number: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, s store) {
				config := repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 10}}
				for n := range 7 {
					if n == 4 {
						config.SnapshotSchema = test.schema
					}
					mustExecute(t, s.accounts(t, config), "42", Deposit(1))
				}
				require.NoError(t, s.journal.Truncate(t.Context(), account("42"), 5, journal.RemoveOptions{}))
				repo := s.accounts(t, repository.Config{SnapshotCodec: test.codec, Redundancy: config.Redundancy})

				for number := 4; number <= 7; number++ {
					a, err := repo.LoadAtVersion(t.Context(), "42", uint64(number))
					require.NoError(t, err, "snapshot 4 and the events after it are there")
					assert.EqualValues(t, number, a.Version)
					assert.Equal(t, number, a.State.Balance)
				}
				mustLoadAtVersion(t, repo, "42", 2)
				_, err := s.accounts(t, repository.Config{SnapshotSchema: 9}).LoadAtVersion(t.Context(), "42", 6)
				require.ErrorAs(t, err, new(*journal.TruncatedError), "when none can be used, the first event is where it starts")
			})
		})
	}
}

func TestLoadAtVersionTakesNoSnapshotOfAnotherProgramThatIsOfALaterEvent(t *testing.T) {
	t.Parallel()
	s := setup(t).typing(t, depositedByPeer)
	repo := s.accounts(t, repository.Config{SnapshotCodec: peerCodec{}})
	mustExecute(t, repo, "42", always(deposits(3)...))
	s.peerWrites(t, account("42"), 4, `{"Amount":7}`, `{"id":"42","seq_nr":4,"version":4,"state":{"Balance":10}}`)

	for number, want := range []int{0, 1, 2, 3, 10} {
		a := mustLoadAtVersion(t, repo, "42", uint64(number))
		assert.EqualValues(t, number, a.Version)
		assert.Equal(t, want, a.State.Balance, "after event %d", number)
	}
}

func TestSavingAnEarlierVersionIsAConflictWhateverSnapshotsAreKept(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 3}})
		for range 4 {
			mustExecute(t, repo, "42", Deposit(1))
		}
		for number := range uint64(4) {
			past := mustLoadAtVersion(t, repo, "42", number)
			_, err := repo.Save(t.Context(), past, deposits(1))
			require.ErrorIs(t, err, journal.ErrConflict, number)
		}
	})
}

// The snapshot of the other program is new in the head since the load.
func TestADecisionThatRefusesAtFirstKeepsTheListOfRedundantSnapshots(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		config := repository.Config{Snapshots: repository.Every(1), Redundancy: &repository.Redundancy{Keep: 10}}
		repo, rival := s.accounts(t, config), s.accounts(t, config)
		mustExecute(t, rival, "42", Deposit(1))
		runs := 0

		a := mustExecute(t, repo, "42", func(a Account) (Events, error) {
			if runs++; runs == 1 {
				mustExecute(t, rival, "42", Deposit(1))
			}
			return Withdraw(2)(a)
		}, repository.WithCommandID("withdraw"))

		assert.EqualValues(t, 3, a.Version)
		head, err := s.journal.Head(t.Context(), a.ID)
		require.NoError(t, err)
		assert.Equal(t, []uint64{1, 2, 3}, head.Redundant)
	})
}
