package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// forSnapshots is an encoding that is applied only to snapshots, or fails for them.
type forSnapshots struct {
	wrapped
	fails error
}

func (e *forSnapshots) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	switch {
	case !at.Snapshot:
		return nil, false, nil
	case e.fails != nil:
		return nil, false, e.fails
	}
	return e.wrapped.Encode(ctx, at, payload)
}

func TestASnapshotThatCannotBeEncodedIsLeftOutAndTheCommitIsWritten(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		keep(t, s.Engine, "1", 1)
		broken := errors.New("broken")
		j := s.through(t, s.client, encodings(&forSnapshots{wrapped{name: "a"}, broken}))

		receipt := mustAppend(t, j, storage.Commit{
			Aggregate: user("1"), Expected: 1, Events: events(2, 1), Snapshot: stateAt(2), Redundancy: &storage.Redundancy{Keep: 3, Listed: []uint64{}},
		})
		assert.EqualValues(t, 2, receipt.Version)
		assert.True(t, receipt.SnapshotLeftOut)
		require.ErrorAs(t, receipt.SnapshotError, new(*journal.EncodingError))
		require.ErrorIs(t, receipt.SnapshotError, broken)
		assert.Empty(t, receipt.Redundant)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 2, Snapshot: stateAt(1)}, s.head(t, user("1")))
		assert.Empty(t, s.snapshots(t, user("1")))
	})
}

// A caller that destroyed a key wants no new data of the aggregate to be stored.
func TestADestroyedKeyRefusesTheCommitAlsoWhereOnlyTheSnapshotNeedsIt(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		destroyed := fmt.Errorf("%w: of %s", journal.ErrKeyDestroyed, user("1"))
		j := s.through(t, s.client, encodings(&forSnapshots{wrapped{name: "a"}, destroyed}))
		commit := one("1")
		commit.Snapshot = stateAt(1)

		_, err := j.Append(t.Context(), commit)

		require.ErrorIs(t, err, journal.ErrKeyDestroyed)
		require.ErrorAs(t, err, new(*journal.EncodingError))
		assert.ErrorContains(t, err, "nothing written")
		s.requireNothingWritten(t, user("1"))
	})
}

func TestTheReceiptSaysWhyASnapshotWasLeftOut(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, x := range map[string]struct {
			commit storage.Commit
			want   any
		}{
			"too large": {storage.Commit{Events: events(1, 1), Snapshot: &journal.Snapshot{Number: 1, Payload: make([]byte, storage.MaxItemBytes)}}, new(*journal.TooLargeError)},
			"no room": {storage.Commit{
				Events: repeat(10, storage.Event{Payload: make([]byte, 400_000)}), Snapshot: &journal.Snapshot{Number: 10, Payload: make([]byte, 300_000)},
			}, storage.ErrNoRoom},
			"stored": {storage.Commit{Events: events(1, 1), Snapshot: stateAt(1)}, nil},
		} {
			if name == "no room" && s.isPacked() {
				x.want = nil // it is not in the transaction
			}
			x.commit.Aggregate = user(name)
			receipt, err := s.Append(t.Context(), x.commit)
			require.NoError(t, err, name)
			assert.Equal(t, x.want != nil, receipt.SnapshotLeftOut, name)
			if x.want != nil {
				requireKind(t, receipt.SnapshotError, x.want, name)
			}
		}
	})
}

func TestASnapshotOfNoEventOrOfOneToComeIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("2"), 1, 2)
		for name, x := range map[string]storage.Commit{
			"of no event":                {Aggregate: user("1"), Events: events(1, 3), Snapshot: stateAt(0)},
			"of one beyond the commit":   {Aggregate: user("1"), Events: events(1, 3), Snapshot: stateAt(4)},
			"beyond a later commit":      {Aggregate: user("2"), Expected: 2, Events: events(3, 1), Snapshot: stateAt(4)},
			"of no event in a later one": {Aggregate: user("2"), Expected: 2, Events: events(3, 1), Snapshot: stateAt(0)},
			"beyond a head looked at":    {Aggregate: user("2"), Expected: 2, CommandID: "c", Snapshot: stateAt(3)},
			"empty":                      {Aggregate: user("1"), Events: events(1, 1), Snapshot: &journal.Snapshot{}},
		} {
			_, err := s.Append(t.Context(), x)
			var config *journal.ConfigError
			require.ErrorAs(t, err, &config, name)
			assert.Equal(t, "Snapshot.Number", config.Field, name)
			s.requireNothingWritten(t, user("1"))
			s.requireVersion(t, user("2"), 2)
		}
		receipt, err := s.Append(t.Context(), storage.Commit{Aggregate: user("2"), Expected: 2, Events: events(3, 1), Snapshot: stateAt(2)})
		require.NoError(t, err, "one of an event before the commit counts too")
		if s.isPacked() { // a load can begin only after the last event of a commit
			require.ErrorIs(t, receipt.SnapshotError, storage.ErrNoRoom)
			return
		}
		assert.Equal(t, stateAt(2), s.head(t, user("2")).Snapshot)
	})
}

// DynamoDB refuses a batch that names an item twice.
func TestSnapshotsMayBeNamedTwiceForRemoval(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		listed := []uint64{}
		for n := range uint64(4) {
			listed = snap(t, s.Engine, user("1"), n, storage.Redundancy{Listed: listed, Keep: 9}).Redundant
		}
		numbers := []uint64{3, 1, 3, 1, 1, 7}
		require.NoError(t, s.RemoveSnapshots(t.Context(), user("1"), numbers))
		assert.Equal(t, []uint64{2, 4}, s.snapshots(t, user("1")))
		assert.Equal(t, []uint64{3, 1, 3, 1, 1, 7}, numbers, "the caller's list is left alone")
	})
}
