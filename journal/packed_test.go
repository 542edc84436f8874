package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

var packed = journal.Config{Layout: journal.Packed}

// packedKey returns the key of an item in the packed layout.
func (s store) packedKey(id aggregate.ID, number string) item {
	a := s.Engine.Config.Attributes
	return item{a.PartitionKey: text(id.Type + "/" + id.Value), a.SortKey: &types.AttributeValueMemberN{Value: number}}
}

// packedNumbers returns the numbers of an aggregate's events that are in the table.
func (s store) packedNumbers(t *testing.T, id aggregate.ID) (found []int) {
	t.Helper()
	for _, it := range s.scan(t, s.Config().Tables.Journal) {
		if it["e"] == nil && it["E"] == nil || !assert.ObjectsAreEqual(text(id.Type+"/"+id.Value), it[s.Engine.Config.Attributes.PartitionKey]) {
			continue
		}
		first, count := numberIn(t, it[s.Engine.Config.Attributes.SortKey]), numberIn(t, it["n"])
		found = append(found, numbersFrom(first, first+count-1)...)
	}
	slices.Sort(found)
	return found
}

// packedSnapshots returns the numbers of the redundant snapshots that exist.
func (s store) packedSnapshots(t *testing.T, id aggregate.ID) (found []uint64) {
	t.Helper()
	for _, it := range s.scan(t, s.Config().Tables.Snapshot) {
		number := numberIn(t, it[s.Engine.Config.Attributes.SortKey])
		if number > 0 && assert.ObjectsAreEqual(text(id.Type+"/"+id.Value), it[s.Engine.Config.Attributes.PartitionKey]) {
			found = append(found, uint64(number))
		}
	}
	slices.Sort(found)
	return found
}

func numberIn(t *testing.T, v types.AttributeValue) (n int) {
	t.Helper()
	_, err := fmt.Sscan(v.(*types.AttributeValueMemberN).Value, &n)
	require.NoError(t, err)
	return n
}

// proven appends n events to a version that the caller has proven.
func (s store) proven(t *testing.T, id aggregate.ID, expected uint64, n int) (storage.Receipt, error) {
	t.Helper()
	return s.Append(t.Context(), storage.Commit{Aggregate: id, Expected: expected, Proven: true, Events: events(int(expected)+1, n)})
}

// commitSnapshot appends an event with a snapshot.
func (s store) commitSnapshot(t *testing.T, id aggregate.ID, expected uint64, state string) {
	t.Helper()
	receipt := mustAppend(t, s, storage.Commit{
		Aggregate: id, Expected: expected, Events: events(int(expected)+1, 1),
		Snapshot: &journal.Snapshot{Number: expected + 1, Payload: []byte(state)},
	})
	require.NoError(t, receipt.SnapshotError)
}

// loaded is the result of a load.
type loaded struct {
	state   string // of the snapshot
	from    uint64
	numbers []uint64
	version uint64
}

// load uses the snapshot unless its state is refused.
func (s store) load(ctx context.Context, id aggregate.ID, refused ...string) (l loaded, err error) {
	found, err := s.Load(ctx, id, func(head journal.Head, _ error) uint64 {
		l = loaded{}
		if head.Snapshot == nil || strings.Contains(strings.Join(refused, " "), string(head.Snapshot.Payload)) {
			return 0
		}
		l.state, l.from = string(head.Snapshot.Payload), head.Snapshot.Number
		return l.from
	}, func(r *journal.Record) error {
		l.numbers = append(l.numbers, r.Number)
		return nil
	})
	l.version = found.Version
	return l, err
}

func TestPackedAVersionWithoutProofIsCompared(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 5)
	s.write(t, user("ada"), 6, 3)
	for _, expected := range []uint64{0, 2, 5, 7, 9, 20} {
		_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("ada"), Expected: expected, Events: events(9, 1)})
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict, expected)
		assert.EqualValues(t, 8, conflict.Actual, expected)
	}
	_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("bob"), Expected: 3, Events: events(4, 1)})
	var conflict *journal.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Zero(t, conflict.Actual)
	s.requireNothingWritten(t, user("bob"))
}

func TestPackedStaleWritersConflictAfterTruncationAndDeletion(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 2)
	s.write(t, user("ada"), 3, 2)
	s.commitSnapshot(t, user("ada"), 4, "five")
	s.write(t, user("ada"), 6, 1)
	require.NoError(t, s.Truncate(t.Context(), user("ada"), 6, journal.RemoveOptions{}))
	for _, version := range []uint64{0, 2, 4, 5} { // each was once the last version
		_, err := s.proven(t, user("ada"), version, 1)
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict, version)
		assert.EqualValues(t, 6, conflict.Actual, version)
	}

	require.NoError(t, s.Delete(t.Context(), user("ada"), 6, journal.RemoveOptions{}))
	for _, version := range []uint64{0, 2, 4, 5, 6} {
		_, err := s.proven(t, user("ada"), version, 1)
		var deleted *journal.DeletedError
		require.ErrorAs(t, err, &deleted, version)
		assert.EqualValues(t, 6, deleted.Version, version)
	}
}

func TestPackedALostReplyIsFoundAfterTheEventsAreRemoved(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	receipt, err := s.proven(t, user("ada"), 0, 2)
	require.NoError(t, err)
	s.commitSnapshot(t, user("ada"), 2, "three")
	require.NoError(t, s.Truncate(t.Context(), user("ada"), 4, journal.RemoveOptions{}))
	written, err := s.Resolve(t.Context(), &journal.OutcomeUnknownError{ID: user("ada"), First: 1, CommitID: receipt.CommitID})
	require.NoError(t, err)
	assert.True(t, written)
}

func TestPackedTheItemsOfAnAggregateTile(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(8) {
		s := setup(t, packed)
		r := rand.New(rand.NewPCG(seed, 1))
		id, ends := user("ada"), []uint64{0}
		snapshot := uint64(0)
		for range 60 {
			version := ends[len(ends)-1]
			switch r.IntN(8) {
			case 0: // a stale writer
				if stale := ends[:len(ends)-1]; len(stale) > 0 {
					_, err := s.proven(t, id, stale[r.IntN(len(stale))], 1+r.IntN(4))
					require.ErrorIs(t, err, journal.ErrConflict, "seed %d: %v", seed, ends)
				}
			case 1: // a writer that has read nothing
				_, err := s.Append(t.Context(), storage.Commit{Aggregate: id, Expected: version + 1 + r.Uint64N(3), Events: events(1, 1)})
				require.ErrorIs(t, err, journal.ErrConflict, "seed %d", seed)
			case 2:
				s.commitSnapshot(t, id, version, fmt.Sprint(version+1))
				ends, snapshot = append(ends, version+1), version+1
			case 3:
				if snapshot > 0 {
					require.NoError(t, s.Truncate(t.Context(), id, 1+r.Uint64N(snapshot+1), journal.RemoveOptions{}))
				}
			default:
				receipt, err := s.proven(t, id, version, 1+r.IntN(9))
				require.NoError(t, err, "seed %d", seed)
				ends = append(ends, receipt.Version)
			}
			if len(ends) == 1 {
				continue
			}
			var numbers []uint64
			found, err := s.Inspect(t.Context(), id, func(r *journal.Record) { numbers = append(numbers, r.Number) })
			require.NoError(t, err)
			require.Empty(t, found.Corrupt, "seed %d", seed)
			l, err := s.load(t.Context(), id)
			require.NoError(t, err, "seed %d", seed)
			require.Equal(t, ends[len(ends)-1], l.version, "seed %d", seed)
			require.Equal(t, snapshot, l.from, "seed %d", seed)
			require.Len(t, l.numbers, int(l.version-l.from), "seed %d", seed)
		}
	}
}

func TestPackedASnapshotOfALostHistoryIsNotUsed(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 2)
	s.commitSnapshot(t, user("ada"), 2, "lost")
	// a restored table may lack it
	s.remove(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "3"))
	s.write(t, user("ada"), 3, 1)
	s.write(t, user("ada"), 4, 1)

	l, err := s.load(t.Context(), user("ada"))
	require.NoError(t, err)
	assert.Equal(t, loaded{numbers: []uint64{1, 2, 3, 4}, version: 4}, l)
	head := mustHead(t, s, user("ada"))
	assert.Nil(t, head.Snapshot)
	require.ErrorIs(t, s.Truncate(t.Context(), user("ada"), 4, journal.RemoveOptions{}), journal.ErrNotCovered)

	s.commitSnapshot(t, user("ada"), 4, "five")
	l, err = s.load(t.Context(), user("ada"))
	require.NoError(t, err)
	assert.Equal(t, loaded{state: "five", from: 5, version: 5}, l)
}

func TestPackedASnapshotAheadOfALostHistoryIsReplaced(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 2)
	s.commitSnapshot(t, user("ada"), 2, "lost")
	s.remove(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "3"))
	s.remove(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "1"))

	s.commitSnapshot(t, user("ada"), 0, "new")
	l, err := s.load(t.Context(), user("ada"))
	require.NoError(t, err)
	assert.Equal(t, loaded{state: "new", from: 1, version: 1}, l)
}

func TestPackedALateSnapshotDoesNotBringBackWhatWasDeleted(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 2)
	proxy := dynamotest.NewProxy(t, s.client)
	late := s.through(t, proxy.Client())
	proxy.Inject(dynamotest.Pause(func(ctx context.Context) {
		assert.NoError(t, s.Delete(ctx, user("ada"), 3, journal.RemoveOptions{}))
	}), dynamotest.On("UpdateItem"), dynamotest.Times(1))
	mustAppend(t, late, storage.Commit{
		Aggregate: user("ada"), Expected: 2, Events: events(3, 1), Snapshot: &journal.Snapshot{Number: 3, Payload: []byte("late")},
	})

	_, err := s.load(t.Context(), user("ada"))
	require.ErrorAs(t, err, new(*journal.DeletedError))
	for _, it := range s.scan(t, s.Config().Tables.Snapshot) {
		assert.Nil(t, it["s"], "no state is left")
	}
}

func TestPackedTruncationKeepsASnapshotForOlderPrograms(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 2)
	s.commitSnapshot(t, user("ada"), 2, "old")
	require.NoError(t, s.Truncate(t.Context(), user("ada"), 4, journal.RemoveOptions{}))
	s.commitSnapshot(t, user("ada"), 3, "new")
	s.write(t, user("ada"), 5, 1)

	l, err := s.load(t.Context(), user("ada"), "new")
	require.NoError(t, err)
	assert.Equal(t, loaded{state: "old", from: 3, numbers: []uint64{4, 5}, version: 5}, l)
	_, err = s.load(t.Context(), user("ada"), "new", "old")
	var truncated *journal.TruncatedError
	require.ErrorAs(t, err, &truncated)
	assert.EqualValues(t, 4, truncated.Before)
}

func TestPackedACommitThatShowsInPartIsReadAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	large := events(1, 3)
	for i := range large {
		large[i].Payload = []byte(strings.Repeat("x", 300<<10))
	}
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Events: large})
	proxy := dynamotest.NewProxy(t, s.client)
	proxy.Inject(dynamotest.Hide(func(it item) bool {
		return it["skey"].(*types.AttributeValueMemberN).Value == "3"
	}), dynamotest.On("Query"), dynamotest.Times(2))
	l, err := store{Engine: s.through(t, proxy.Client()), client: s.client}.load(t.Context(), user("ada"))
	require.NoError(t, err)
	assert.Equal(t, []uint64{1, 2, 3}, l.numbers)

	s.remove(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "3"))
	_, err = store{Engine: s.through(t, s.client, impatient), client: s.client}.load(t.Context(), user("ada"))
	require.ErrorAs(t, err, new(*journal.CorruptItemError))
}

func TestPackedCommandIDsOutliveSnapshotsAndTruncation(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	const commands = 300
	var known *storage.Commands
	for n := range uint64(commands) {
		c := storage.Commit{Aggregate: user("ada"), Expected: n, Proven: true, Events: events(int(n)+1, 1), CommandID: fmt.Sprint("command ", n+1), Commands: known}
		if n%10 == 9 {
			c.Snapshot = &journal.Snapshot{Number: n + 1, Payload: []byte("state")}
		}
		receipt := mustAppend(t, s, c)
		known = receipt.Commands
	}
	require.NoError(t, s.Truncate(t.Context(), user("ada"), commands+1, journal.RemoveOptions{}))
	for n := uint64(1); n <= commands; n++ {
		c, found, err := s.Command(t.Context(), user("ada"), fmt.Sprint("command ", n))
		require.NoError(t, err)
		require.True(t, found, n)
		require.Equal(t, n, c.Version)
		_, err = s.Append(t.Context(), storage.Commit{
			Aggregate: user("ada"), Expected: commands, Proven: true, Events: events(1, 1), CommandID: fmt.Sprint("command ", n), Commands: known,
		})
		var duplicate *journal.DuplicateCommandError
		require.ErrorAs(t, err, &duplicate, n)
		require.Equal(t, n, duplicate.First)
	}
}

func TestPackedATailPageHasAllEventsWhateverTheirSize(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Packed, Shards: 1})
	r := rand.New(rand.NewPCG(1, 2))
	want := 0
	for i := range 40 {
		id, version := user(fmt.Sprint(i)), uint64(0)
		for range 6 {
			list := events(int(version)+1, 1+r.IntN(3))
			for k := range list {
				list[k].Payload = []byte(strings.Repeat("x", r.IntN(1500)))
			}
			receipt := mustAppend(t, s, storage.Commit{Aggregate: id, Expected: version, Proven: true, Events: list})
			version = receipt.Version
			want += len(list)
		}
	}
	for _, limit := range []int{0, 7} {
		seen := map[string]int{}
		q := storage.TailQuery{AggregateType: user("").Type, Limit: limit}
		for {
			page, err := s.TailShard(t.Context(), q)
			require.NoError(t, err)
			require.Empty(t, page.Corrupt)
			for _, r := range page.Records {
				require.Equal(t, "counted", r.EventType)
				seen[fmt.Sprint(r.Aggregate, r.Number)]++
			}
			if q.After = page.Next; !page.More {
				break
			}
		}
		require.Len(t, seen, want)
		for at, times := range seen {
			require.Equal(t, 1, times, at)
		}
	}
}

func TestPackedANumberOfEventsThatCannotBeIsCorruptInATailOfNumbers(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	s.write(t, user("ada"), 2, 1)
	s.change(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "1"), item{"n": number(1 << 61)})
	q := s.tailOf(user("ada"))
	q.NumbersOnly = true
	page := tail(t, s.Engine, q)
	assert.Equal(t, []string{"ada/2"}, places(page.Records))
	require.Len(t, page.Corrupt, 1)
	assert.Equal(t, "1", page.Corrupt[0].SortKey)
}

func TestPackedAnEventThatAQueryDoesNotShowIsReadAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	for n := range 4 {
		s.write(t, user("ada"), n+1, 1)
	}
	for _, hidden := range []string{"1", "2", "4"} {
		for name, do := range map[string]func(s store) []uint64{
			"load": func(s store) []uint64 {
				l, err := s.load(t.Context(), user("ada"))
				require.NoError(t, err, hidden)
				return l.numbers
			},
			"events": func(s store) (numbers []uint64) {
				records, err := read(t, s.Engine, user("ada"), 1, 4)
				require.NoError(t, err, hidden)
				for _, r := range records {
					numbers = append(numbers, r.Number)
				}
				return numbers
			},
		} {
			if name == "load" && hidden == "4" {
				continue // a load cannot know it
			}
			proxy := dynamotest.NewProxy(t, s.client)
			proxy.Inject(dynamotest.Hide(func(it item) bool {
				return it["skey"].(*types.AttributeValueMemberN).Value == hidden
			}), dynamotest.On("Query"), dynamotest.Times(2))
			numbers := do(store{Engine: s.through(t, proxy.Client()), client: s.client})
			assert.Equal(t, []uint64{1, 2, 3, 4}, numbers, "%s without %s", name, hidden)
		}
	}
	s.remove(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "2"))
	_, loadErr := s.load(t.Context(), user("ada"))
	_, readErr := read(t, s.Engine, user("ada"), 1, 4)
	for _, err := range []error{loadErr, readErr} {
		var corrupt *journal.CorruptItemError
		require.ErrorAs(t, err, &corrupt)
		assert.Equal(t, "2", corrupt.SortKey)
		assert.EqualValues(t, 2, corrupt.Number)
	}
}

func TestPackedTheSnapshotThatTruncationKeepsKnowsTheCommands(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	for n := range uint64(3) {
		mustAppend(t, s, storage.Commit{
			Aggregate: user("ada"), Expected: n, Events: events(int(n)+1, 1), CommandID: fmt.Sprint("command ", n+1),
			Snapshot: &journal.Snapshot{Number: n + 1, Payload: []byte("old")},
		})
	}
	require.NoError(t, s.Truncate(t.Context(), user("ada"), 4, journal.RemoveOptions{}))
	s.commitSnapshot(t, user("ada"), 3, "new")

	found, err := s.Load(t.Context(), user("ada"), func(head journal.Head, _ error) uint64 {
		if head.Snapshot == nil || string(head.Snapshot.Payload) == "new" {
			return 0
		}
		return head.Snapshot.Number
	}, func(*journal.Record) error { return nil })

	require.NoError(t, err)
	_, err = s.Append(t.Context(), storage.Commit{
		Aggregate: user("ada"), Expected: found.Version, Proven: true, Commands: found.Commands, Events: events(5, 1), CommandID: "command 1",
	})
	var duplicate *journal.DuplicateCommandError
	require.ErrorAs(t, err, &duplicate)
	assert.EqualValues(t, 1, duplicate.First)
}

func TestPackedTwoExecutionsOfACommandWithoutEventsAreOne(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("at 1"), 1, 1)
	for id, version := range map[string]uint64{"at 0": 0, "at 1": 1} {
		// Neither knows the other's command, because both have read before.
		commit := storage.Commit{Aggregate: user(id), Expected: version, Proven: true, CommandID: "pay", Commands: &storage.Commands{Version: version}}
		receipt := mustAppend(t, s, commit)
		_, err := s.Append(t.Context(), commit)
		var duplicate *journal.DuplicateCommandError
		require.ErrorAs(t, err, &duplicate, id)
		assert.Equal(t, receipt.CommitID, duplicate.CommitID, id)
	}
}

func TestPackedRedundantSnapshotsThatNobodyRemovesAreRemovedByCommits(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	for n := range uint64(8) {
		head, err := s.Head(t.Context(), user("ada"))
		if n > 0 {
			require.NoError(t, err)
		}
		snap(t, s.Engine, user("ada"), n, storage.Redundancy{Listed: append([]uint64{}, head.Redundant...), Keep: 2})
	}
	s.requireListed(t, user("ada"), []uint64{6, 7, 8}, []uint64{6, 7, 8})
}

func TestPackedAnEncodingFindsNothingBeforeACommitToATombstone(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.covered(t, user("ada"), 3)
	require.NoError(t, s.Delete(t.Context(), user("ada"), 3, journal.RemoveOptions{}))
	j := s.through(t, s.client, encodings(&looksBack{wrapped{name: "a"}}))
	for _, expected := range []uint64{1, 2, 3, 4} {
		_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("ada"), Expected: expected, Events: events(int(expected)+1, 1)})
		require.ErrorAs(t, err, new(*journal.DeletedError), expected)
	}
}

// looksBack is an encoding that asks for the encodings of the event before the commit.
type looksBack struct{ wrapped }

func (e *looksBack) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	if _, err := storage.EncodingBefore(ctx); err != nil {
		return nil, false, err
	}
	return e.wrapped.Encode(ctx, at, payload)
}

func TestPackedNoSnapshotAndNoTombstoneFailsForAnotherTransaction(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	s.covered(t, user("ada"), 3)
	conflict := db.Inject(dynamotest.Conflict(), dynamotest.On("PutItem"), dynamotest.Times(3))
	require.NoError(t, s.Delete(t.Context(), user("ada"), 3, journal.RemoveOptions{}))
	assert.Equal(t, 3, conflict.Fired())
}

func TestPackedGuardsOfCommandsDisturbNoReader(t *testing.T) {
	t.Parallel()
	s, id := setup(t, packed), user("ada")
	const commands = 140
	for n := range commands {
		c := storage.Commit{Aggregate: id, Expected: uint64(n), Events: events(n+1, 1), CommandID: fmt.Sprint(n)}
		if n == commands-1 {
			c.Snapshot = &journal.Snapshot{Number: commands, Payload: []byte("state")}
		}
		mustAppend(t, s, c)
	}
	_, err := s.execute(t, id, commands, 0, "no events")
	require.NoError(t, err)
	_, err = s.execute(t, user("bob"), 0, 0, "no aggregate")
	require.NoError(t, err)

	s.requireVersion(t, id, commands)
	records, err := read(t, s.Engine, id, 1, commands)
	require.NoError(t, err)
	requireNumbers(t, records, 1, commands)
	page := tail(t, s.Engine, s.tailOf(id))
	assert.Len(t, page.Records, commands)
	assert.Empty(t, page.Corrupt)
	assert.Len(t, s.heads(t, journal.HeadsQuery{}), 1)
	_, err = s.load(t.Context(), user("bob"))
	require.ErrorIs(t, err, journal.ErrNotFound)
	found, err := s.Inspect(t.Context(), id, func(*journal.Record) {})
	require.NoError(t, err)
	assert.Empty(t, found.Corrupt)

	require.NoError(t, s.Delete(t.Context(), id, commands, journal.RemoveOptions{}))
	for _, command := range []string{"0", "139", "no events"} {
		_, err = s.execute(t, id, 0, 1, command)
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError), command)
	}
}

func TestPackedACheckOfAnItemThatTheCommitWritesIsRefusedAndOneOfAnyOtherIsNot(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	table, key := s.Config().Tables.Journal, s.Engine.Config.Attributes.PartitionKey
	s.write(t, user("ada"), 1, 2)
	commit := func(n int, number string) error {
		check := present(table, key, s.packedKey(user("ada"), number))
		_, err := s.Append(t.Context(), storage.Commit{
			Aggregate: user("ada"), Expected: 2, Events: events(3, n), CommandID: "c", Writes: []types.TransactWriteItem{check},
		})
		return err
	}
	for _, number := range []string{"3", "4"} {
		err := commit(2, number)
		require.ErrorIs(t, err, journal.ErrInvalidCommit, number)
		require.ErrorContains(t, err, "an item of the commit's own", number)
	}
	require.ErrorIs(t, commit(0, "3"), journal.ErrInvalidCommit, "a command without events checks that there is none")
	require.NoError(t, commit(2, "1"))
}

func TestPackedACommitIsOnePut(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	calls := db.Record()
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Events: events(1, 50)})
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 50, Proven: true, Events: events(51, 1), CommandID: "x", Commands: &storage.Commands{Version: 50}})
	assert.Equal(t, map[string]int{"PutItem": 2}, calls.Counts())
	out, err := s.client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(s.Config().Tables.Journal), KeyConditionExpression: aws.String("pkey = :p"),
		ExpressionAttributeValues: item{":p": text("user-account/ada")},
	})
	require.NoError(t, err)
	assert.Len(t, out.Items, 2)
}

func TestPackedAPageOfTheTailHasAMegabyteAtMost(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Packed, Shards: 1})
	const commits, size = 30, 150 << 10
	for n := range commits {
		large := events(1, 1)
		large[0].Payload = []byte(strings.Repeat("x", size))
		mustAppend(t, s, storage.Commit{Aggregate: user(fmt.Sprint(n)), Events: large})
	}
	seen, q := 0, storage.TailQuery{AggregateType: user("").Type}
	for more := true; more; {
		page, err := s.TailShard(t.Context(), q)
		require.NoError(t, err)
		require.NotEmpty(t, page.Records)
		require.LessOrEqual(t, len(page.Records)*size, 1<<20)
		seen += len(page.Records)
		q.After, more = page.Next, page.More
	}
	assert.Equal(t, commits, seen)
}

// More events are missing in the index than one request can read.
func TestPackedAPageOfTheTailReadsKeysSideBySide(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Packed, Shards: 1})
	const commits = 450
	for n := range commits {
		large := events(1, 1)
		large[0].Payload = []byte(strings.Repeat("x", 1<<10))
		mustAppend(t, s, storage.Commit{Aggregate: user(fmt.Sprint(n)), Events: large, Proven: true})
	}
	q := storage.TailQuery{AggregateType: user("").Type}
	client := &meddler{Client: s.client}
	client.batchGet = func(_ int, in *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
		left := map[string]types.KeysAndAttributes{}
		for table, keys := range in.RequestItems {
			if n := len(keys.Keys) / 2; n > 0 {
				left[table] = types.KeysAndAttributes{Keys: keys.Keys[n:], ConsistentRead: keys.ConsistentRead}
				keys.Keys = keys.Keys[:n]
				in.RequestItems[table] = keys
			}
		}
		out, err := send()
		if err == nil {
			out.UnprocessedKeys = left
		}
		return out, err
	}
	seen := map[string]int{}
	log := s.through(t, client)
	for more := true; more; {
		page, err := log.TailShard(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, page.Corrupt)
		for _, r := range page.Records {
			seen[r.Aggregate.Value]++
		}
		q.After, more = page.Next, page.More
	}
	assert.Len(t, seen, commits)
	for id, n := range seen {
		assert.Equal(t, 1, n, id)
	}

	broken := errors.New("broken")
	client.batchGet = func(call int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
		if call%2 == 0 {
			return nil, broken
		}
		return send()
	}
	_, err := log.TailShard(t.Context(), storage.TailQuery{AggregateType: user("").Type})
	assert.ErrorIs(t, err, broken)
}

// The CBOR library has a lower limit by default.
func TestPackedManyKeysOfMetadataCanBeRead(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	metadata := aggregate.Metadata{}
	for n := range 70_000 {
		metadata[strconv.FormatInt(int64(n), 36)] = ""
	}
	mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: []storage.Event{{Type: "x", Metadata: metadata}}})
	for record, err := range s.Engine.Events(t.Context(), user("1"), 1, 1) {
		require.NoError(t, err)
		assert.Len(t, record.Metadata, len(metadata))
	}
}

// The snapshot table is of a later moment than the journal, so its truncation belongs to another
// history.
func TestPackedATruncationNeedsASnapshotOfThisHistory(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	for n := range 5 {
		s.write(t, user("1"), n+1, 1)
	}
	backup := s.scan(t, s.Config().Tables.Journal)
	s.commitSnapshot(t, user("1"), 5, "six")
	require.NoError(t, s.Truncate(t.Context(), user("1"), 6, journal.RemoveOptions{}))
	s.remove(t, s.Config().Tables.Journal, s.packedKey(user("1"), "6"))
	for _, it := range backup {
		s.put(t, s.Config().Tables.Journal, it)
	}
	s.Engine = s.through(t, s.client)
	head := mustHead(t, s, user("1"))
	assert.Zero(t, head.TruncatedBefore)
	require.ErrorIs(t, s.Truncate(t.Context(), user("1"), 2, journal.RemoveOptions{}), journal.ErrNotCovered)
	s.requireVersion(t, user("1"), 5)
	s.commitSnapshot(t, user("1"), 5, "six again")
	require.NoError(t, s.Truncate(t.Context(), user("1"), 3, journal.RemoveOptions{}))
	head = mustHead(t, s, user("1"))
	assert.EqualValues(t, 3, head.TruncatedBefore)
}
