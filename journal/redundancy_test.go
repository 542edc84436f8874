package journal_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func stateAt(n uint64) *journal.Snapshot {
	return &journal.Snapshot{Number: n, Payload: fmt.Appendf(nil, "state %d", n), Schema: 3}
}

// snap commits one event and a redundant snapshot of it.
func snap(t *testing.T, j *engine.Engine, id aggregate.ID, expected uint64, r storage.Redundancy) storage.Receipt {
	t.Helper()
	receipt := mustAppend(t, j, storage.Commit{
		Aggregate: id, Expected: expected, Events: events(int(expected)+1, 1), Snapshot: stateAt(expected + 1), Redundancy: &r,
	})
	require.False(t, receipt.SnapshotLeftOut)
	return receipt
}

// snapshots returns the numbers of the redundant rows that exist.
func (s store) snapshots(t *testing.T, id aggregate.ID) []uint64 {
	t.Helper()
	var numbers []uint64
	if s.isPacked() {
		return s.packedSnapshots(t, id)
	}
	for _, it := range s.scan(t, s.Config().Tables.Snapshot) {
		if n, ok := it[s.Engine.Config.Attributes.SequenceNumber].(*types.AttributeValueMemberN); ok && n.Value != "0" &&
			it[s.Engine.Config.Attributes.AggregateID].(*types.AttributeValueMemberS).Value == id.String() {
			var number uint64
			_, err := fmt.Sscan(n.Value, &number)
			require.NoError(t, err)
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// requireListed requires that the head and the table name the same snapshots.
func (s store) requireListed(t *testing.T, id aggregate.ID, listed, rows []uint64) {
	t.Helper()
	head := mustHead(t, s, id)
	require.Equal(t, listed, head.Redundant, "listed")
	require.Equal(t, rows, s.snapshots(t, id), "rows")
}

func TestARedundantSnapshotIsARowToTheLetterOfTheSchema(t *testing.T) {
	for name, config := range classics() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, config)
			c, a, id := s.Config(), s.Engine.Config.Attributes, user("1")
			const century = 100 * 365 * 24 * time.Hour // the store's clock is in the past
			for _, ttl := range []time.Duration{0, century} {
				version := 3
				if ttl > 0 {
					version = 6
				}
				payload := fmt.Sprintf("state %d", version)
				mustAppend(t, s, storage.Commit{
					Aggregate: id, Expected: uint64(version - 3), Events: events(version-2, 3), Snapshot: stateAt(uint64(version)),
					Redundancy: &storage.Redundancy{Listed: []uint64{}, Keep: 1, TTL: ttl},
				})
				sum := sha256.Sum256([]byte(payload))
				want := item{
					a.PartitionKey:    text(storage.ShardKey(id.Type, s.Shard(id))),
					a.SortKey:         text(fmt.Sprintf("user-account-1-%d", version)),
					a.AggregateID:     text("user-account-1"),
					a.SequenceNumber:  number(int64(version)),
					a.Version:         number(int64(version)),
					a.TTL:             number(0),
					a.Payload:         binary(payload),
					"snapshot_seq_nr": number(int64(version)),
					"snapshot_digest": binary(string(sum[:16])),
					"snapshot_schema": number(3),
				}
				if ttl > 0 {
					want[a.TTL] = number(1_700_000_000 + int64(century/time.Second))
				}
				assert.Equal(t, want, s.get(t, c.Tables.Snapshot, s.keyOf(id, version)))
				list := &types.AttributeValueMemberL{Value: []types.AttributeValue{number(int64(version))}}
				head := s.get(t, c.Tables.Snapshot, s.keyOf(id, 0))
				assert.Equal(t, list, head["snapshot_redundant"])
				assert.Equal(t, number(0), head[a.TTL], "the head never expires")
			}
		})
	}
}

func TestAsManySnapshotsAreKeptAsAskedForAndTheOldestGoFirst(t *testing.T) {
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, config)
			for _, keep := range []int{1, 3} {
				id, listed := user(fmt.Sprint("keep ", keep)), []uint64{}
				for n := range uint64(8) {
					receipt := snap(t, s.Engine, id, n, storage.Redundancy{Listed: listed, Keep: keep})
					require.NoError(t, s.RemoveSnapshots(t.Context(), id, receipt.Surplus))

					all := []uint64{1, 2, 3, 4, 5, 6, 7, 8}[:n+1]
					kept := all[max(0, len(all)-keep):]
					require.Equal(t, kept, receipt.Redundant[len(receipt.Surplus):])
					require.LessOrEqual(t, len(receipt.Surplus), 1)
					s.requireListed(t, id, receipt.Redundant, kept)
					listed = receipt.Redundant
				}
			}
		})
	}
}

func TestSnapshotsWhoseRemovalFailedAreDeletedByLaterCommits(t *testing.T) {
	inFakeTime(t, map[string]journal.Config{"classic": renamed}, func(t *testing.T, s store) {
		id := user("1")
		proxy := dynamotest.NewProxy(t, s.client)
		j := s.through(t, proxy.Client(testdb.Once), impatient)
		proxy.Inject(dynamotest.Throttle(), dynamotest.On("BatchWriteItem"), dynamotest.Times(4))
		listed := []uint64{}
		for n := range uint64(4) {
			receipt := snap(t, j, id, n, storage.Redundancy{Listed: listed, Keep: 1})
			if n > 0 {
				require.ErrorIs(t, j.RemoveSnapshots(t.Context(), id, receipt.Surplus), journal.ErrThrottled)
			}
			listed = receipt.Redundant
			s.requireListed(t, id, listed, listed)
			assert.LessOrEqual(t, len(listed), 2, "what failed is made good by the next commit")
		}
	})
}

func TestKeepingFewerSnapshotsRemovesTheRest(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		id, listed := user("1"), []uint64{}
		for n := range uint64(60) {
			receipt := snap(t, s.Engine, id, n, storage.Redundancy{Listed: listed, Keep: 60})
			require.Empty(t, receipt.Surplus)
			listed = receipt.Redundant
		}
		require.Len(t, s.snapshots(t, id), 60)
		proxy := dynamotest.NewProxy(t, s.client)
		j := s.through(t, proxy.Client(testdb.Once))
		calls := proxy.Record()

		receipt := snap(t, j, id, 60, storage.Redundancy{Listed: listed, Keep: 1})
		assert.Len(t, receipt.Redundant, 61-25, "a commit deletes no more than 25 for others")
		assert.Len(t, receipt.Surplus, 61-25-1)
		s.requireListed(t, id, receipt.Redundant, receipt.Redundant)
		require.NoError(t, j.RemoveSnapshots(t.Context(), id, receipt.Surplus))

		assert.Equal(t, map[string]int{"TransactWriteItems": 1, "BatchWriteItem": 2}, calls.Counts(),
			"35 surplus rows are two batches, and nothing is counted or listed")
		s.requireListed(t, id, receipt.Redundant, []uint64{61})
		for n := uint64(61); n < 64; n++ {
			receipt = snap(t, j, id, n, storage.Redundancy{Listed: receipt.Redundant, Keep: 1})
		}
		assert.Equal(t, []uint64{63, 64}, receipt.Redundant)
	})
}

func TestSnapshotsThatDynamoDBLeavesUnprocessedAreRemovedAllTheSame(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	id, listed := user("1"), []uint64{}
	for n := range uint64(30) {
		listed = snap(t, s.Engine, id, n, storage.Redundancy{Listed: listed, Keep: 30}).Redundant
	}
	db.Inject(dynamotest.Unprocessed(7), dynamotest.On("BatchWriteItem"), dynamotest.Times(5))
	calls := db.Record()

	require.NoError(t, s.RemoveSnapshots(t.Context(), id, listed[:29]))

	assert.Equal(t, []uint64{30}, s.snapshots(t, id))
	assert.Greater(t, len(calls.Calls("BatchWriteItem")), 2)

	db.Inject(dynamotest.Unprocessed(25), dynamotest.On("BatchWriteItem"))
	err := s.through(t, s.client, impatient).RemoveSnapshots(t.Context(), id, listed)
	require.ErrorIs(t, err, journal.ErrThrottled)
	require.ErrorContains(t, err, "left 30 deletes unprocessed")

	ctx, cancel := cancellable(t)
	db.Observe(func(c dynamotest.Call) {
		if c.Operation == "BatchWriteItem" {
			cancel()
		}
	})
	err = s.RemoveSnapshots(ctx, id, listed)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, journal.ErrThrottled)
}

func TestTheHeadIsNeverRemovedAsASnapshot(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		snap(t, s.Engine, user("1"), 0, storage.Redundancy{Keep: 1})
		require.ErrorContains(t, s.RemoveSnapshots(t.Context(), user("1"), []uint64{1, 0}), "0 is the head")
		require.ErrorAs(t, s.RemoveSnapshots(t.Context(), user(""), []uint64{1}), new(*aggregate.InvalidIDError))
		s.requireListed(t, user("1"), []uint64{1}, []uint64{1})
		require.NoError(t, s.RemoveSnapshots(t.Context(), user("1"), nil))
	})
}

func TestNothingIsReadOrCountedForRedundancy(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	calls, listed := db.Record(), []uint64{}
	for n := range uint64(5) {
		receipt := snap(t, s.Engine, user("1"), n, storage.Redundancy{Listed: listed, Keep: 2})
		require.NoError(t, s.RemoveSnapshots(t.Context(), user("1"), receipt.Surplus))
		listed = receipt.Redundant
	}
	assert.Len(t, calls.Calls("TransactWriteItems"), 5)
	assert.Len(t, calls.Calls("BatchWriteItem"), 3, "only where something is surplus")
	assert.Len(t, calls.Calls(), 8)
}

func TestAListThatIsNotKnownIsAddedToAndNothingIsRemoved(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		for n := range uint64(4) {
			receipt := snap(t, s.Engine, id, n, storage.Redundancy{Keep: 1})
			assert.Nil(t, receipt.Redundant)
			assert.Nil(t, receipt.Surplus)
		}
		s.requireListed(t, id, []uint64{1, 2, 3, 4}, []uint64{1, 2, 3, 4})
		head := mustHead(t, s, id)

		receipt := snap(t, s.Engine, id, 4, storage.Redundancy{Listed: head.Redundant, Keep: 1})

		assert.Equal(t, []uint64{4, 5}, receipt.Redundant)
		assert.Equal(t, []uint64{4}, receipt.Surplus)
		s.requireListed(t, id, []uint64{4, 5}, []uint64{4, 5})
	})
}

func TestACommitWithoutSnapshotLeavesTheListAsItIs(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		listed := snap(t, s.Engine, id, 0, storage.Redundancy{Listed: []uint64{}, Keep: 1}).Redundant

		receipt := mustAppend(t, s, storage.Commit{
			Aggregate: id, Expected: 1, Events: events(2, 1), Redundancy: &storage.Redundancy{Listed: listed, Keep: 1},
		})
		assert.Equal(t, []uint64{1}, receipt.Redundant)
		assert.Empty(t, receipt.Surplus)
		s.requireListed(t, id, []uint64{1}, []uint64{1})
	})
}

func TestSnapshotsWithATimeToLiveAreLeftToDynamoDB(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	id, listed := user("1"), []uint64{}
	calls := db.Record()
	for n := range uint64(4) {
		receipt := snap(t, s.Engine, id, n, storage.Redundancy{Listed: listed, Keep: 2, TTL: time.Hour})
		assert.Empty(t, receipt.Surplus)
		listed = receipt.Redundant
		db.Clock().Advance(10 * time.Minute)
	}
	for _, c := range calls.Calls("TransactWriteItems") {
		assert.Equal(t, 3, c.Items, "head, event, row, and no deletion")
	}
	s.requireListed(t, id, []uint64{3, 4}, []uint64{1, 2, 3, 4})

	db.Clock().Advance(35 * time.Minute)
	s.requireListed(t, id, []uint64{3, 4}, []uint64{3, 4})
	db.Clock().Advance(10 * time.Minute)
	s.requireListed(t, id, []uint64{3, 4}, []uint64{4})
	head := mustHead(t, s, id)
	got, err := s.SnapshotBefore(t.Context(), head, 3)
	require.NoError(t, err)
	assert.Nil(t, got, "a row that has expired is as good as none")

	db.Clock().Advance(1000 * time.Hour)
	s.requireListed(t, id, []uint64{3, 4}, nil)
	head = mustHead(t, s, id)
	assert.Equal(t, stateAt(4), head.Snapshot, "the latest stays")
}

// A full commit leaves out parts in this order: first deletions for others, then the redundant row.
func TestAFullCommitLeavesOutWhatItCanDoWithout(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for free := range 5 {
			id, listed := user(fmt.Sprint(free)), []uint64{}
			for n := range uint64(3) {
				listed = snap(t, s.Engine, id, n, storage.Redundancy{Listed: listed, Keep: 3}).Redundant
			}
			n := storage.MaxEvents - free

			receipt := mustAppend(t, s, storage.Commit{
				Aggregate: id, Expected: 3, Events: events(4, n), Snapshot: stateAt(uint64(3 + n)),
				Redundancy: &storage.Redundancy{Listed: listed, Keep: 1},
			})
			version := uint64(3 + n)
			assert.False(t, receipt.SnapshotLeftOut, "the head has room")
			want := []uint64{1, 2, 3}
			if free >= 1 {
				want = append(want[min(free-1, 2):], version)
			}
			assert.Equal(t, want, receipt.Redundant, "%d actions free", free)
			s.requireListed(t, id, want, want)
			head := mustHead(t, s, id)
			assert.Equal(t, stateAt(version), head.Snapshot)
		}
	})
}

func TestASnapshotThatIsTooLargeLeavesTheRedundantOnesAsTheyAre(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s := setup(t, journal.Config{Layout: layout})
		id := user("1")
		listed := snap(t, s.Engine, id, 0, storage.Redundancy{Listed: []uint64{}, Keep: 1}).Redundant

		receipt := mustAppend(t, s, storage.Commit{
			Aggregate: id, Expected: 1, Events: events(2, 1), Snapshot: &journal.Snapshot{Number: 2, Payload: make([]byte, storage.MaxItemBytes)},
			Redundancy: &storage.Redundancy{Listed: listed, Keep: 1},
		})
		assert.True(t, receipt.SnapshotLeftOut)
		assert.Equal(t, listed, receipt.Redundant)
		s.requireListed(t, id, listed, []uint64{1})
		head := mustHead(t, s, id)
		assert.Equal(t, stateAt(1), head.Snapshot)
	})
}

// Without room for the list, the head would be over 400 KB, and the commit would fail because of an
// optional snapshot.
func TestALongListBesideALargeStateFailsNoCommit(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	const version = 1 << 61
	listed := []uint64{}
	for n := range uint64(1000) {
		listed = append(listed, 1<<60+n) // the longest numbers
	}
	for size := storage.MaxItemBytes - 40_000; size < storage.MaxItemBytes; size += 4_000 {
		id := user(fmt.Sprint(size))
		head := s.keyOf(id, 0)
		head["aid"], head["seq_nr"], head["version"] = text(id.String()), number(0), number(version)
		s.put(t, s.Config().Tables.Snapshot, head)
		_, err := s.Append(t.Context(), storage.Commit{
			Aggregate: id, Expected: version, Events: events(1, 1), Snapshot: &journal.Snapshot{Number: version + 1, Payload: make([]byte, size)},
			Redundancy: &storage.Redundancy{Listed: listed, Keep: 2000},
		})
		require.NoError(t, err, "a state of %d bytes", size)
	}
}

func TestARedundancyThatCannotBeIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			number uint64
			r      storage.Redundancy
			field  string
		}{
			"keep none":            {1, storage.Redundancy{Listed: []uint64{}}, "Redundancy.Keep"},
			"keep fewer than none": {1, storage.Redundancy{Listed: []uint64{}, Keep: -1}, "Redundancy.Keep"},
			"the same by TTL":      {1, storage.Redundancy{Listed: []uint64{}, Keep: -1, TTL: time.Hour}, "Redundancy.Keep"},
			"a time that has been": {1, storage.Redundancy{Keep: 1, TTL: -1}, "Redundancy.TTL"},
			"the head's number":    {0, storage.Redundancy{Keep: 1}, "Snapshot.Number"},
			"a number to come":     {2, storage.Redundancy{Keep: 1}, "Snapshot.Number"},
			"listed already":       {1, storage.Redundancy{Keep: 1, Listed: []uint64{1}}, "Redundancy.Listed"},
			"a list that is ahead": {1, storage.Redundancy{Keep: 1, Listed: []uint64{1, 2}}, "Redundancy.Listed"},
		} {
			_, err := s.Append(t.Context(), storage.Commit{
				Aggregate: user("1"), Events: events(1, 1), Snapshot: stateAt(c.number), Redundancy: &c.r,
			})
			var config *journal.ConfigError
			require.ErrorAs(t, err, &config, name)
			assert.Equal(t, c.field, config.Field, name)
			s.requireNothingWritten(t, user("1"))
		}
	})
}

func TestTheSnapshotBeforeAnEventIsTheLatestThatIsNotAfterIt(t *testing.T) {
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, config)
			id := user("1")
			var listed []uint64
			for n := range uint64(9) {
				if n%3 == 2 {
					listed = snap(t, s.Engine, id, n, storage.Redundancy{Listed: append([]uint64{}, listed...), Keep: 5}).Redundant
				} else {
					s.write(t, id, int(n)+1, 1)
				}
			}
			head := mustHead(t, s, id)
			require.Equal(t, []uint64{3, 6, 9}, head.Redundant)
			want := func(number, snapshot uint64) {
				t.Helper()
				got, err := s.SnapshotBefore(t.Context(), head, number)
				require.NoError(t, err)
				if snapshot == 0 {
					require.Nil(t, got, "before event %d", number)
					return
				}
				require.Equal(t, stateAt(snapshot), got, "before event %d", number)
			}
			for number, snapshot := range []uint64{0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9} {
				want(uint64(number), snapshot)
			}
			require.NoError(t, s.RemoveSnapshots(t.Context(), id, []uint64{6}))
			want(8, 3) // the head still lists it
			want(9, 9)
		})
	}
}

// Another program keeps no list, and its aggregate may have the same id text as one of another
// type.
func TestTheSnapshotBeforeAnEventIsFoundByIndexWhereAForeignWriterPutIt(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, a := s.Config(), s.Engine.Config.Attributes
		one, other := aggregate.ID{Type: "user", Value: "account-x"}, aggregate.ID{Type: "user-account", Value: "x"}
		for n := 1; n <= 6; n++ {
			for _, id := range []aggregate.ID{one, other} {
				if n == 6 && id == one {
					continue
				}
				it := s.keyOf(id, n)
				it[a.AggregateID], it[a.SequenceNumber], it[a.Version] = text(id.String()), number(int64(n)), number(int64(n))
				if it[a.Payload] = text(fmt.Sprint(id.Type, n)); n == 4 && id == one {
					delete(it, a.Payload)
				}
				s.put(t, c.Tables.Snapshot, it)
			}
		}
		for number, want := range map[uint64]uint64{1: 1, 3: 3, 4: 3, 5: 5, 6: 5, 100: 5} {
			got, err := s.SnapshotBefore(t.Context(), journal.Head{Aggregate: one}, number)
			require.NoError(t, err)
			assert.Equal(t, &journal.Snapshot{Payload: fmt.Append(nil, "user", want)}, got, "before event %d", number)
		}
		for _, head := range []journal.Head{{Aggregate: one}, {Aggregate: one, Redundant: []uint64{7}}, {Aggregate: user("nobody")}} {
			number := uint64(6)
			if head.Aggregate == one && head.Redundant == nil {
				number = 0
			}
			got, err := s.SnapshotBefore(t.Context(), head, number)
			require.NoError(t, err)
			assert.Nil(t, got)
		}
		// A listed row that another program replaced.
		got, err := s.SnapshotBefore(t.Context(), journal.Head{Aggregate: one, Redundant: []uint64{2}}, 5)
		require.NoError(t, err)
		assert.Equal(t, &journal.Snapshot{Payload: []byte("user2")}, got)
	})
}

func TestASnapshotThatIsLeftOutIsReplacedByALaterOne(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		id := user(strings.Repeat("x", 900)) // a long id leaves less room for the state
		for n, size := range []int{storage.MaxItemBytes - 2_000, 100} {
			receipt := mustAppend(t, s, storage.Commit{
				Aggregate: id, Expected: uint64(n), Events: events(n+1, 1), Snapshot: &journal.Snapshot{Number: uint64(n + 1), Payload: make([]byte, size)},
			})
			assert.Equal(t, n == 0, receipt.SnapshotLeftOut)
		}
	})
}

func TestWritesOfTheCallerComeBeforeSnapshots(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s := setup(t, journal.Config{Layout: layout})
		c := s.callersTable(t)
		commit := storage.Commit{
			Aggregate: user("1"), Events: events(1, 90), Snapshot: stateAt(90), Redundancy: &storage.Redundancy{Listed: []uint64{}, Keep: 1},
		}
		for n := range 9 {
			commit.Writes = append(commit.Writes, c.count(fmt.Sprint(n)))
		}

		receipt := mustAppend(t, s, commit)
		assert.False(t, receipt.SnapshotLeftOut)
		if layout == journal.Classic { // in the packed layout it is not in the transaction
			assert.Empty(t, receipt.Redundant)
		}
		s.requireVersion(t, user("1"), 90)
		assert.Len(t, s.scan(t, c.name), 9)
	}
}
