package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
)

// putBack sets the version of a head that has a snapshot of event 5 back to 3, and removes the events after that, as one
// does who repairs a journal that was restored.
func putBack(t *testing.T, s store) {
	t.Helper()
	for n := 1; n <= 5; n++ {
		_, err := s.Append(t.Context(), journal.Commit{
			Aggregate: user("1"), Expected: uint64(n - 1), Events: events(n, 1), Snapshot: stateAt(uint64(n)),
			Redundancy: &journal.Redundancy{Keep: 9},
		})
		require.NoError(t, err)
	}
	a := s.Config().Attributes
	s.change(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0), item{a.Version: number(3)})
	for n := 4; n <= 5; n++ {
		s.remove(t, s.Config().Tables.Journal, s.keyOf(user("1"), n))
	}
}

func TestASnapshotAheadOfAHeadThatWasPutBackIsNeverBelievedAgain(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		putBack(t, s)
		head, err := s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.Nil(t, head.Snapshot)
		assert.Equal(t, []uint64{1, 2, 3}, head.Redundant)

		for version := uint64(3); version < 6; version++ {
			_, err := s.Append(t.Context(), journal.Commit{Aggregate: user("1"), Expected: version, Events: events(int(version)+1, 1)})
			require.NoError(t, err)
			head, err := s.Head(t.Context(), user("1"))
			require.NoError(t, err)
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
			eachLayout(t, func(t *testing.T, s store) {
				putBack(t, s)
				_, err := s.Append(t.Context(), journal.Commit{
					Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: stateAt(4), CommandID: "c",
					Redundancy: &journal.Redundancy{Listed: listed, Keep: 9},
				})
				require.NoError(t, err)

				head, err := s.Head(t.Context(), user("1"))

				require.NoError(t, err)
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

	head, err := s.Head(t.Context(), user("1"))
	require.NoError(t, err)
	assert.Equal(t, &journal.Snapshot{Payload: []byte("theirs")}, head.Snapshot)
}

func TestAnOlderSchemaDoesNotReplaceTheSnapshotThatStandsForTruncatedEvents(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		newer := &journal.Snapshot{Number: 3, Payload: []byte("newer"), Schema: 2}
		_, err := s.Append(t.Context(), journal.Commit{
			Aggregate: user("1"), Events: events(1, 3), Snapshot: newer, Redundancy: &journal.Redundancy{Keep: 9, Listed: []uint64{}},
		})
		require.NoError(t, err)
		older := journal.Commit{
			Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: &journal.Snapshot{Number: 4, Payload: []byte("older"), Schema: 1},
			Redundancy: &journal.Redundancy{Keep: 1, Listed: []uint64{3}},
		}
		require.NoError(t, s.Truncate(t.Context(), user("1"), 3, journal.Removal{}))

		receipt, err := s.Append(t.Context(), older)

		require.NoError(t, err)
		assert.True(t, receipt.SnapshotLeftOut)
		require.ErrorIs(t, receipt.SnapshotError, journal.ErrOldSchema)
		assert.Equal(t, []uint64{3}, receipt.Redundant)
		assert.Empty(t, receipt.Surplus)
		head, err := s.Head(t.Context(), user("1"))
		require.NoError(t, err)
		assert.EqualValues(t, 4, head.Version)
		assert.Equal(t, newer, head.Snapshot)

		older.Expected, older.Events = 4, events(5, 1)
		older.Snapshot = &journal.Snapshot{Number: 5, Payload: []byte("as new"), Schema: 2}
		receipt, err = s.Append(t.Context(), older)
		require.NoError(t, err)
		assert.False(t, receipt.SnapshotLeftOut)
	})
}
