package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// putBack sets the version of a head with a snapshot of event 5 back to 3, and removes the later
// events. An operator who repairs a restored journal does the same.
func putBack(t *testing.T, s store) {
	t.Helper()
	for n := 1; n <= 5; n++ {
		mustAppend(t, s, storage.Commit{
			Aggregate: user("1"), Expected: uint64(n - 1), Events: events(n, 1), Snapshot: stateAt(uint64(n)),
			Redundancy: &storage.Redundancy{Keep: 9},
		})
	}
	a := s.Engine.Config.Attributes
	s.change(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0), item{a.Version: number(3)})
	for n := 4; n <= 5; n++ {
		s.remove(t, s.Config().Tables.Journal, s.keyOf(user("1"), n))
	}
}

func TestASnapshotAheadOfAHeadThatWasPutBackIsNeverBelievedAgain(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		putBack(t, s)
		head := mustHead(t, s, user("1"))
		assert.Nil(t, head.Snapshot)
		assert.Equal(t, []uint64{1, 2, 3}, head.Redundant)

		for version := uint64(3); version < 6; version++ {
			mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: version, Events: events(int(version)+1, 1)})
			head := mustHead(t, s, user("1"))
			assert.Equal(t, journal.Head{Aggregate: user("1"), Version: version + 1, Redundant: []uint64{1, 2, 3}}, head)
		}
		before, err := s.SnapshotBefore(t.Context(), head, 6)
		require.NoError(t, err)
		assert.Equal(t, stateAt(3), before)
	})
}

func TestACommitReplacesASnapshotThatIsAhead(t *testing.T) {
	for name, listed := range map[string][]uint64{"with a list": {1, 2, 3}, "without a list": nil} {
		t.Run(name, func(t *testing.T) {
			onClassic(t, func(t *testing.T, s store) {
				putBack(t, s)
				mustAppend(t, s, storage.Commit{
					Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: stateAt(4), CommandID: "c",
					Redundancy: &storage.Redundancy{Listed: listed, Keep: 9},
				})

				head := mustHead(t, s, user("1"))
				assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 4, Snapshot: stateAt(4), Redundant: []uint64{1, 2, 3, 4}}, head)
			})
		})
	}
}

func TestAForeignStateStaysThoughTheMarksBesideItAreAhead(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	putBack(t, s)
	s.change(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0), item{"payload": text("theirs")})

	s.write(t, user("1"), 4, 2)

	head := mustHead(t, s, user("1"))
	assert.Equal(t, &journal.Snapshot{Payload: []byte("theirs")}, head.Snapshot)
}

func TestAnOlderSchemaDoesNotReplaceTheSnapshotThatStandsForTruncatedEvents(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		newer := &journal.Snapshot{Number: 3, Payload: []byte("newer"), Schema: 2}
		mustAppend(t, s, storage.Commit{
			Aggregate: user("1"), Events: events(1, 3), Snapshot: newer, Redundancy: &storage.Redundancy{Keep: 9, Listed: []uint64{}},
		})
		older := storage.Commit{
			Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: &journal.Snapshot{Number: 4, Payload: []byte("older"), Schema: 1},
			Redundancy: &storage.Redundancy{Keep: 1, Listed: []uint64{3}},
		}
		require.NoError(t, s.Truncate(t.Context(), user("1"), 3, journal.RemoveOptions{}))

		receipt := mustAppend(t, s, older)
		assert.True(t, receipt.SnapshotLeftOut)
		require.ErrorIs(t, receipt.SnapshotError, storage.ErrOldSchema)
		assert.Equal(t, []uint64{3}, receipt.Redundant)
		assert.Empty(t, receipt.Surplus)
		head := mustHead(t, s, user("1"))
		assert.EqualValues(t, 4, head.Version)
		assert.Equal(t, newer, head.Snapshot)

		older.Expected, older.Events = 4, events(5, 1)
		older.Snapshot = &journal.Snapshot{Number: 5, Payload: []byte("as new"), Schema: 2}
		receipt = mustAppend(t, s, older)
		assert.False(t, receipt.SnapshotLeftOut)
	})
}

func TestAFullCommitRemovesASnapshotThatIsAhead(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		putBack(t, s)
		commit := storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, storage.MaxEvents), Snapshot: stateAt(102)}

		mustAppend(t, s, commit)
		want := journal.Head{Aggregate: user("1"), Version: 102, Redundant: []uint64{1, 2, 3}, Snapshot: stateAt(102)}
		assert.Equal(t, want, s.head(t, user("1")))
	})
}

func TestACommitThatReachesOrPassesASnapshotAheadRemovesItToo(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint("to event ", 3+n), func(t *testing.T) {
			onClassic(t, func(t *testing.T, s store) {
				putBack(t, s)
				s.write(t, user("1"), 4, n)
				assert.Equal(t, journal.Head{Aggregate: user("1"), Version: uint64(3 + n), Redundant: []uint64{1, 2, 3}}, s.head(t, user("1")))
			})
		})
	}
}

func TestRedundantSnapshotsAheadAreForgottenBesideATimeToLive(t *testing.T) {
	for name, c := range map[string]struct{ listed, want []uint64 }{
		"known":     {[]uint64{1, 2, 3}, []uint64{3, 4}},
		"not known": {nil, []uint64{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			onClassic(t, func(t *testing.T, s store) {
				putBack(t, s)
				mustAppend(t, s, storage.Commit{
					Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: stateAt(4),
					Redundancy: &storage.Redundancy{Keep: 2, Listed: c.listed, TTL: 100 * 365 * 24 * time.Hour},
				})
				assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 4, Snapshot: stateAt(4), Redundant: c.want}, s.head(t, user("1")))
			})
		})
	}
}

func TestNothingOfASnapshotAheadStaysOnTheHead(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, a := s.Config(), s.Engine.Config.Attributes
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		for n := uint64(1); n <= 2; n++ {
			mustAppend(t, j, storage.Commit{
				Aggregate: user("1"), Expected: n - 1, Events: events(int(n), 1), Snapshot: stateAt(n), Redundancy: &storage.Redundancy{Keep: 9},
			})
		}
		ahead := s.get(t, c.Tables.Snapshot, s.keyOf(user("1"), 0))
		ahead[a.Version] = number(1)
		ahead["snapshot_redundant"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{number(2)}}
		reset := func() {
			s.put(t, c.Tables.Snapshot, ahead)
			s.remove(t, c.Tables.Journal, s.keyOf(user("1"), 2))
		}

		reset()
		s.write(t, user("1"), 2, 1)
		want := s.keyOf(user("1"), 0)
		want[a.AggregateID], want[a.SequenceNumber] = text("user-account-1"), number(0)
		want[a.Version], want[a.TTL] = number(2), number(0)
		assert.Equal(t, want, s.get(t, c.Tables.Snapshot, s.keyOf(user("1"), 0)))

		reset()
		keep(t, s.Engine, "1", 2) // plain
		assert.NotContains(t, s.get(t, c.Tables.Snapshot, s.keyOf(user("1"), 0)), "encoding")
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 2, Snapshot: stateAt(2)}, s.head(t, user("1")))

		reset()
		keep(t, j, "1", 2) // encoded
		head := mustHead(t, j, user("1"))
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 2, Snapshot: stateAt(2)}, head)
	})
}

func TestAForeignStateBesideMarksAheadIsReplacedByOurOwn(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	table, key := s.Config().Tables.Snapshot, s.keyOf(user("1"), 0)
	putBack(t, s)
	s.change(t, table, key, item{"payload": text("theirs")})
	s.write(t, user("1"), 4, 1)
	it := s.get(t, table, key)
	assert.Equal(t, text("theirs"), it["payload"], "as it was")
	for _, mark := range []string{"snapshot_seq_nr", "snapshot_digest", "snapshot_schema"} {
		assert.NotContains(t, it, mark)
	}
	s.change(t, table, key, item{"version": number(3), "snapshot_seq_nr": number(5)})
	s.remove(t, s.Config().Tables.Journal, s.keyOf(user("1"), 4))

	receipt := keep(t, s.Engine, "1", 4)

	s.requireAfterAdapting(t, receipt, stateAt(4))
}

func TestASnapshotOfALaterSchemaIsReplacedWhereNoEventsNeedIt(t *testing.T) {
	for name, c := range map[string]struct {
		truncateBefore uint64
		version        int64 // of the head after it is put back
	}{
		"nothing is truncated":               {0, 5},
		"it is of a history that is no more": {3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			onClassic(t, func(t *testing.T, s store) {
				id := user("1")
				s.covered(t, id, 5) // schema 3
				if c.truncateBefore > 0 {
					require.NoError(t, s.Truncate(t.Context(), id, c.truncateBefore, journal.RemoveOptions{}))
				}
				s.change(t, s.Config().Tables.Snapshot, s.keyOf(id, 0), item{s.Engine.Config.Attributes.Version: number(c.version)})
				s.remove(t, s.Config().Tables.Journal, s.keyOf(id, int(c.version)+1))
				older := &journal.Snapshot{Number: uint64(c.version) + 1, Payload: []byte("older"), Schema: 1}

				receipt := mustAppend(t, s, storage.Commit{
					Aggregate: id, Expected: uint64(c.version), Events: events(int(c.version)+1, 1), Snapshot: older,
				})
				assert.False(t, receipt.SnapshotLeftOut)
				assert.Equal(t, older, s.head(t, id).Snapshot)
			})
		})
	}
}
