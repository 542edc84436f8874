package journal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// loading records the calls of one Load to a reader that starts from snapshots.
type loading struct {
	heads        []journal.Head
	snapshotErrs []error
	start        []uint64 // the number of its last event, for each time that the load began
	applied      []*journal.Record
	fail         error // returned by apply
}

func (l *loading) load(t *testing.T, j *engine.Engine, id aggregate.ID) (uint64, error) {
	t.Helper()
	found, err := j.Load(t.Context(), id, func(head journal.Head, snapshotErr error) uint64 {
		l.heads, l.snapshotErrs, l.applied = append(l.heads, head), append(l.snapshotErrs, snapshotErr), nil
		start := uint64(0)
		if head.Snapshot != nil {
			start = head.Snapshot.Number
		}
		l.start = append(l.start, start)
		return start
	}, func(r *journal.Record) error {
		l.applied = append(l.applied, r)
		return l.fail
	})
	return found.Version, err
}

func TestALoadGoesOnFromTheSnapshot(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		for _, c := range []storage.Commit{
			{Aggregate: user("1"), Events: events(1, 4), Snapshot: stateAt(4)},
			{Aggregate: user("1"), Expected: 4, Events: events(5, 20)},
		} {
			mustAppend(t, j, c)
		}
		var l loading

		version, err := l.load(t, j, user("1"))

		require.NoError(t, err)
		assert.EqualValues(t, 24, version)
		require.Len(t, l.heads, 1)
		if !s.isPacked() { // it has not read that far yet
			assert.EqualValues(t, 24, l.heads[0].Version)
		}
		assert.Equal(t, stateAt(4), l.heads[0].Snapshot, "decoded")
		require.NoError(t, l.snapshotErrs[0])
		requireNumbers(t, l.applied, 5, 24)
	})
}

func TestALoadFromTheLatestSnapshotReadsTheHeadAlone(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.covered(t, user("1"), 3)
	client := &meddler{Client: s.client}
	j := s.through(t, client)
	client.calls = nil
	var l loading

	version, err := l.load(t, j, user("1"))

	require.NoError(t, err)
	assert.EqualValues(t, 3, version)
	assert.Empty(t, l.applied)
	assert.Equal(t, map[string]int{"get": 1}, client.calls)
}

func TestALoadWithoutASnapshotBeginsWithTheFirstEvent(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 3)
		var l loading
		version, err := l.load(t, s.Engine, user("1"))
		require.NoError(t, err)
		assert.EqualValues(t, 3, version)
		assert.Nil(t, l.heads[0].Snapshot)
		requireNumbers(t, l.applied, 1, 3)
	})
}

func TestALoadFindsNoAggregateOrATombstone(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		var l loading
		_, err := l.load(t, s.Engine, user("1"))
		require.ErrorIs(t, err, journal.ErrNotFound)
		_, err = l.load(t, s.Engine, aggregate.ID{})
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		s.covered(t, user("1"), 3)
		require.NoError(t, s.Delete(t.Context(), user("1"), 3, journal.RemoveOptions{}))
		_, err = l.load(t, s.Engine, user("1"))
		var deleted *journal.DeletedError
		require.ErrorAs(t, err, &deleted)
		assert.EqualValues(t, 3, deleted.Version)
		assert.Empty(t, l.heads, "begin was not called")
	})
}

// afterHead calls act once, after the first read of a head.
func (s store) afterHead(t *testing.T, act func()) *engine.Engine {
	t.Helper()
	client := &meddler{Client: s.client}
	j := s.through(t, client)
	acted := false
	client.getItem = func(_ int, _ *dynamodb.GetItemInput, send func() (*dynamodb.GetItemOutput, error)) (*dynamodb.GetItemOutput, error) {
		out, err := send()
		if !acted {
			acted = true
			act()
		}
		return out, err
	}
	return j
}

func TestALoadStartsOverAfterATruncation(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 12)
		j := s.afterHead(t, func() {
			mustAppend(t, s, storage.Commit{
				Aggregate: user("1"), Expected: 12, Events: events(13, 1), Snapshot: stateAt(13),
			})
			s.write(t, user("1"), 14, 2)
			require.NoError(t, s.Truncate(t.Context(), user("1"), 13, journal.RemoveOptions{}))
		})
		var l loading

		version, err := l.load(t, j, user("1"))

		require.NoError(t, err)
		assert.EqualValues(t, 15, version)
		assert.Equal(t, []uint64{0, 13}, l.start)
		requireNumbers(t, l.applied, 14, 15)
	})
}

func TestALoadReportsADeletionBetweenItsReads(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 12)
		j := s.afterHead(t, func() { require.NoError(t, s.Delete(t.Context(), user("1"), 12, journal.RemoveOptions{})) })
		_, err := new(loading).load(t, j, user("1"))
		require.ErrorAs(t, err, new(*journal.DeletedError))
	})
}

// Starting again does not help if truncated events have no snapshot that this reader can use.
func TestALoadThatNeedsTruncatedEventsFails(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.covered(t, user("1"), 12)
		require.NoError(t, s.Truncate(t.Context(), user("1"), 10, journal.RemoveOptions{}))
		begun := 0
		_, err := s.Load(t.Context(), user("1"), func(journal.Head, error) uint64 { begun++; return 0 }, func(*journal.Record) error { return nil })
		require.ErrorAs(t, err, new(*journal.TruncatedError))
		if !s.isPacked() { // it begins again without a snapshot
			assert.Equal(t, 1, begun)
		}
	})
}

func TestASnapshotThatCannotBeDecodedDoesNotEndALoad(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		requests := 2 // the head, and all events
		if s.isPacked() {
			requests = 4 // the snapshot and the events, and again without it
		}
		s.write(t, user("1"), 1, 2)
		mustAppend(t, s.through(t, s.client, encodings(&wrapped{name: "a"})), storage.Commit{
			Aggregate: user("1"), Expected: 2, Events: []storage.Event{{Payload: []byte("short")}}, Snapshot: stateAt(3),
		})
		client := &meddler{Client: s.client}

		for name, broken := range map[string]*wrapped{"no such encoding": nil, "no key": {name: "a", fail: errors.New("no key")}} {
			var list []journal.Encoding
			if broken != nil {
				list = append(list, broken)
			}
			j := s.through(t, client, encodings(list...))
			client.calls = nil
			var l loading
			version, err := l.load(t, j, user("1"))
			require.NoError(t, err, name)
			assert.EqualValues(t, 3, version, name)
			require.ErrorAs(t, l.snapshotErrs[0], new(*journal.EncodingError), name)
			assert.Nil(t, l.heads[0].Snapshot, name)
			assert.Len(t, l.applied, 3, name)
			assert.LessOrEqual(t, client.calls["get"]+client.calls["batchGet"]+client.calls["query"], requests, name)
		}

		destroyed := &wrapped{name: "a", fail: fmt.Errorf("%w: of 1", journal.ErrKeyDestroyed)}
		_, err := new(loading).load(t, s.through(t, client, encodings(destroyed)), user("1"))
		require.ErrorIs(t, err, journal.ErrKeyDestroyed)
	})
}

func TestAnErrorOfApplyEndsALoad(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 3)
		for _, own := range []error{errors.New("own"), &journal.TruncatedError{ID: user("1"), Before: 100}} {
			l := loading{fail: own}
			_, err := l.load(t, s.Engine, user("1"))
			assert.Equal(t, own, err, "as it is")
			assert.Len(t, l.applied, 1)
			assert.Len(t, l.heads, 1)
		}
	})
}
