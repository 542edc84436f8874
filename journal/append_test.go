package journal_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

func TestAppendNumbersEventsFromOneOn(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		first := mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		assert.EqualValues(t, 1, first.Version)
		assert.Equal(t, time.UnixMilli(1_700_000_000_000).UTC(), first.OccurredAt)
		s.clock.advance(time.Hour)
		second := mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: first.Version, Events: events(2, 2)})
		assert.EqualValues(t, 3, second.Version)
		assert.Equal(t, time.Hour, second.OccurredAt.Sub(first.OccurredAt))
		assert.NotEqual(t, first.CommitID, second.CommitID)

		records, err := read(t, s.Engine, user("1"), 1, 3)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 3)
		assert.Equal(t, []string{first.CommitID, second.CommitID, second.CommitID},
			[]string{records[0].CommitID, records[1].CommitID, records[2].CommitID})
		head := mustHead(t, s, user("1"))
		assert.EqualValues(t, 3, head.Version)
	})
}

func TestACommitIsOneRoundTrip(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		j := s.through(t, client)
		client.calls = nil
		for n := range 3 {
			mustAppend(t, j, storage.Commit{Aggregate: user("1"), Expected: uint64(n * 10), Events: events(1, 10)})
		}
		assert.Equal(t, map[string]int{"transact": 3}, client.calls)
	})
}

func TestACommitHoldsUpTo99Events(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: events(1, storage.MaxEvents)})
		records, err := read(t, s.Engine, user("1"), 1, 99)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 99)
	})
}

func TestAppendRefusesWhatCannotBeStoredAndWritesNothing(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		event := func(e storage.Event) []storage.Event { return []storage.Event{{Type: "fine"}, e} }
		for name, c := range map[string]struct {
			commit storage.Commit
			want   any
			texts  []string
		}{
			"no aggregate type": {storage.Commit{Aggregate: aggregate.ID{Value: "1"}, Events: events(1, 1)}, new(*aggregate.InvalidIDError), []string{"the type is empty"}},
			"no id":             {storage.Commit{Aggregate: user(""), Events: events(1, 1)}, new(*aggregate.InvalidIDError), []string{"the value is empty"}},
			"an id too long": {
				storage.Commit{Aggregate: user(strings.Repeat("x", 1_000)), Events: events(1, 1)},
				new(*aggregate.InvalidIDError),
				[]string{"make 1013 bytes, the limit is 1003", "shorten the value by 10"},
			},
			"no events": {storage.Commit{Aggregate: user("1")}, journal.ErrInvalidCommit, []string{"user-account-1"}},
			"100 events": {
				storage.Commit{Aggregate: user("1"), Events: events(1, 100)},
				new(*journal.TooLargeError),
				[]string{"user-account-1", "the commit has 100 events", "room for 99", "split the decision"},
			},
			"an event over 400 KB": {
				storage.Commit{Aggregate: user("1"), Events: event(storage.Event{Type: "large", Payload: make([]byte, 400<<10)})},
				new(*journal.TooLargeError),
				[]string{"user-account-1", `event 2 of the commit, "large"`, "409600", "store a reference"},
			},
			"a commit over 4 MB": {
				storage.Commit{Aggregate: user("1"), Events: repeat(11, storage.Event{Payload: make([]byte, 390_000)})},
				new(*journal.TooLargeError),
				[]string{"user-account-1", "the commit has 429", "4194304", "split the commit"},
			},
			"an event id that is not UTF-8": {
				storage.Commit{Aggregate: user("1"), Events: event(storage.Event{ID: "\xff"})},
				journal.ErrInvalidCommit,
				[]string{"user-account-1", "event 2 of the commit", `"\xff"`, "not UTF-8"},
			},
			"an event type that is not UTF-8": {
				storage.Commit{Aggregate: user("1"), Events: event(storage.Event{Type: "\xff"})},
				journal.ErrInvalidCommit,
				[]string{"event 2 of the commit", "not UTF-8"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				client := &meddler{Client: s.client}
				j := s.through(t, client)
				client.calls = nil

				_, err := j.Append(t.Context(), c.commit)

				requireKind(t, err, c.want)
				for _, text := range c.texts {
					assert.ErrorContains(t, err, text)
				}
				assert.Empty(t, client.calls, "nothing is sent")
			})
		}
	})
}

func repeat(n int, e storage.Event) []storage.Event {
	list := make([]storage.Event, n)
	for i := range list {
		list[i] = e
	}
	return list
}

func TestACommitUpToTheLimitOf4MBIsWritten(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		size, err := s.EventSize(user("1"), storage.Event{})
		require.NoError(t, err)
		payload := make([]byte, storage.MaxEventsBytes/11-size)

		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: repeat(11, storage.Event{Payload: payload})})
		records, err := read(t, s.Engine, user("1"), 1, 11)
		require.NoError(t, err)
		assert.Len(t, records, 11)
	})
}

func TestASnapshotThatIsTooLargeIsLeftOut(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		small, large := []byte("state"), make([]byte, storage.MaxItemBytes)
		for n, c := range []struct {
			snapshot *journal.Snapshot
			leftOut  bool
			want     *journal.Snapshot
		}{
			{&journal.Snapshot{Number: 1, Payload: large}, true, nil},
			{&journal.Snapshot{Number: 2, Payload: small}, false, &journal.Snapshot{Number: 2, Payload: small}},
			{&journal.Snapshot{Number: 3, Payload: large}, true, &journal.Snapshot{Number: 2, Payload: small}},
			{&journal.Snapshot{Number: 4, Payload: large[:408_000]}, false, &journal.Snapshot{Number: 4, Payload: large[:408_000]}},
		} {
			receipt := mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: uint64(n), Events: events(n+1, 1), Snapshot: c.snapshot})
			assert.Equal(t, c.leftOut, receipt.SnapshotLeftOut)
			head := mustHead(t, s, user("1"))
			assert.EqualValues(t, n+1, head.Version)
			assert.Equal(t, c.want, head.Snapshot)
		}
	})
}

// After a truncation there may be no other snapshot, and the events in between are removed.
func TestASnapshotOlderThanTheCommitIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 10)
		require.NoError(t, s.Truncate(t.Context(), id, 11, journal.RemoveOptions{}))
		for _, number := range []uint64{0, 3, 9, 12} {
			_, err := s.Append(t.Context(), storage.Commit{Aggregate: id, Expected: 10, Events: events(11, 1), Snapshot: &journal.Snapshot{Number: number, Payload: []byte("{}")}})
			var config *journal.ConfigError
			require.ErrorAs(t, err, &config, number)
			require.ErrorContains(t, err, "from 10 to 11")
		}
		head := s.head(t, id)
		assert.EqualValues(t, 10, head.Version)
		assert.EqualValues(t, 10, head.Snapshot.Number)
	})
}

func TestASnapshotThatMakesTheCommitTooLargeIsLeftOut(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	receipt := mustAppend(t, s, storage.Commit{
		Aggregate: user("1"),
		Events:    repeat(10, storage.Event{Payload: make([]byte, 400_000)}),
		Snapshot:  &journal.Snapshot{Number: 10, Payload: make([]byte, 300_000)},
	})
	assert.True(t, receipt.SnapshotLeftOut)
}

func TestACommitThatExpectsAnotherVersionIsAConflictAndWritesNothing(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 3)
		for _, expected := range []uint64{0, 1, 2, 4, 1 << 63} {
			_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: expected, Events: events(1, 2)})

			var conflict *journal.ConflictError
			require.ErrorIs(t, err, journal.ErrConflict)
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, journal.ConflictError{ID: user("1"), Expected: expected, Actual: 3}, *conflict)
			assert.EqualError(t, err, fmt.Sprintf(
				"aggregate user-account-1 is at version 3, not at %d as expected: load it again and decide again", expected))
		}
		_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("2"), Expected: 1, Events: events(2, 1)})
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, journal.ConflictError{ID: user("2"), Expected: 1, Actual: 0}, *conflict, "an aggregate that does not exist")

		records, err := read(t, s.Engine, user("1"), 1, 3)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 3)
		s.requireVersion(t, user("1"), 3)
		s.requireNothingWritten(t, user("2"))
	})
}

// DynamoDB does not promise to evaluate all conditions once one has failed.
func TestAnEventInTheWayIsAConflictWhereTheHeadHasMovedUnseen(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 2)
		s.write(t, user("2"), 1, 2)
		require.NoError(t, s.Delete(t.Context(), user("2"), 2, journal.RemoveOptions{}))
		unseen := func() (*http.Response, error) {
			return refuse(http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed"}]`)
		}
		j := s.through(t, s.onCommits(func(int, func() (*http.Response, error)) (*http.Response, error) { return unseen() }))

		_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 1, Events: events(2, 1)})
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, journal.ConflictError{ID: user("1"), Expected: 1, Actual: 2}, *conflict)

		_, err = j.Append(t.Context(), storage.Commit{Aggregate: user("2"), Expected: 2, Events: events(3, 1)})
		require.ErrorAs(t, err, new(*journal.DeletedError))

		_, err = j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 2, Events: events(3, 1)})
		require.ErrorAs(t, err, new(*journal.CorruptItemError))

		proxy := dynamotest.NewProxy(t, s.client)
		denied := store{client: proxy.Client(testdb.Once)}
		j = s.through(t, denied.onCommits(func(int, func() (*http.Response, error)) (*http.Response, error) { return unseen() }))
		proxy.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"))
		_, err = j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 1, Events: events(2, 1)})
		require.ErrorIs(t, err, journal.ErrThrottled)
		require.ErrorContains(t, err, "nothing written")
	})
}

func TestAnEventThatStandsWhereTheHeadSaysThereIsNoneIsNotOverwritten(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c := s.Config()
		s.write(t, user("1"), 1, 1)
		stray := s.foreignEvent(user("1"), 3, text("stray"), 5)
		s.put(t, c.Tables.Journal, stray)

		_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 1, Events: events(2, 3)})

		var corrupt *journal.CorruptItemError
		require.ErrorAs(t, err, &corrupt)
		assert.Equal(t, journal.CorruptItemError{
			Aggregate: user("1"), Number: 3, Table: c.Tables.Journal, PartitionKey: "user-account-1", SortKey: "user-account-1-3",
			Reason: "exists although the head of its aggregate is at version 1",
		}, *corrupt)
		assert.Equal(t, stray, s.get(t, c.Tables.Journal, s.keyOf(user("1"), 3)))
		assert.Empty(t, s.get(t, c.Tables.Journal, s.keyOf(user("1"), 2)))
	})
}

func TestACommitIDThatDynamoDBWouldNotTakeIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for _, id := range []string{"", strings.Repeat("x", 37)} {
			j := s.through(t, s.client, func(c *journal.Config) { c.NewID = func() string { return id } })

			_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})

			require.ErrorAs(t, err, new(*journal.ConfigError))
			assert.ErrorContains(t, err, "NewID returned")
		}
		s.requireNothingWritten(t, user("1"))
	})
}

func TestTwoWritersThatRaceAThousandTimesLeaveNeitherGapNorRepeat(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		const races = 1_000
		var wins, conflicts [2]int
		var wg sync.WaitGroup
		for writer := range wins {
			wg.Add(1)
			go func() {
				defer wg.Done()
				version := uint64(0)
				for version < races {
					receipt, err := s.Append(t.Context(), storage.Commit{
						Aggregate: user("1"), Expected: version,
						Events: []storage.Event{{ID: fmt.Sprint(version + 1), Payload: fmt.Append(nil, version+1), Type: fmt.Sprint(writer)}},
					})
					var conflict *journal.ConflictError
					switch {
					case err == nil:
						wins[writer]++
						version = receipt.Version
					case assert.ErrorAs(t, err, &conflict):
						conflicts[writer]++
						if !assert.Greater(t, conflict.Actual, version, "a conflict that is none") {
							return
						}
						version = conflict.Actual
					default:
						return
					}
				}
			}()
		}
		wg.Wait()
		t.Logf("wins %v, conflicts %v", wins, conflicts)

		head := mustHead(t, s, user("1"))
		assert.EqualValues(t, races, head.Version)
		assert.Equal(t, races, wins[0]+wins[1], "each number was given away once")
		records, err := read(t, s.Engine, user("1"), 1, races)
		require.NoError(t, err)
		requireNumbers(t, records, 1, races)
		byWriter := map[string]int{}
		for _, r := range records {
			byWriter[r.EventType]++
		}
		assert.Equal(t, map[string]int{"0": wins[0], "1": wins[1]}, byWriter, "and to the one that was told so")
		assert.Len(t, s.scan(t, s.Config().Tables.Journal), 1+races, "and there is nothing else")
	})
}

func TestManyWritersWhoseRepliesAreLostNowAndThenLeaveNeitherGapNorRepeat(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		const writers, each = 4, 25
		var calls atomic.Int64
		j := s.through(t, s.onCommits(func(_ int, send func() (*http.Response, error)) (*http.Response, error) {
			switch calls.Add(1) % 5 {
			case 0:
				_, _ = send()
				return nil, errConnectionLost
			case 3:
				return nil, errConnectionLost
			default:
				return send()
			}
		}))
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				version := uint64(0)
				for n := 0; n < each; {
					receipt, err := j.Append(t.Context(), storage.Commit{
						Aggregate: user("1"), Expected: version, Events: []storage.Event{{ID: fmt.Sprintf("%d/%d", writer, n)}},
					})
					var conflict *journal.ConflictError
					switch {
					case err == nil:
						version = receipt.Version
						n++
					case assert.ErrorAs(t, err, &conflict):
						version = conflict.Actual
					default:
						return
					}
				}
			}()
		}
		wg.Wait()

		records, err := read(t, s.Engine, user("1"), 1, writers*each)
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, r := range records {
			seen[r.EventID] = true
		}
		assert.Len(t, seen, writers*each, "each event once")
		_, err = read(t, s.Engine, user("1"), writers*each+1, writers*each+1)
		assert.ErrorAs(t, err, new(*journal.CorruptItemError), "and no more")
	})
}
