package checkpoint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestHeadsAndPositionsMeetWhateverTheIdsAre(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		// Few ids, so that the first and the last id as text differ from the first and the last
		// key.
		for _, ids := range [][]string{oddIDs, {"bob", "bob+x"}, {"x!", "x"}, {"a", "a b", "a-"}} {
			headsMeetPositions(t, setupIn(t, layout, 1), ids)
		}
	})
}

// oddIDs have another order as text than as keys: "x-0" is the key of x, and a prefix of the key of
// x-05.
var oddIDs = []string{"x", "x-", "x-0", "x-05", "x-0-0", "x-1", "x!", "x/", "x0", "x.", "X", "ä", "x ", "-", "-0", "0", "position/x-0"}

func headsMeetPositions(t *testing.T, s store, ids []string) {
	t.Helper()
	want := map[string]uint64{}
	for n, id := range ids {
		s.write(t, account(id), n+1)
		if n%3 > 0 {
			want[id] = uint64(n)
			require.NoError(t, s.PutPosition(t.Context(), group, account(id), 1, uint64(n)))
		}
	}
	// This writes an epoch and no position.
	_, _, err := s.Claim(t.Context(), group, account(ids[0]), 1)
	require.NoError(t, err)
	require.NoError(t, s.PutPosition(t.Context(), group, account("nobody"), 1, 5))

	seen := map[string]bool{}
	for page, err := range s.AggregateProgress(t.Context(), shard, aggregate.ID{}, nil) {
		require.NoError(t, err)
		for _, progress := range page {
			id := progress.Head.Aggregate.Value
			assert.False(t, seen[id], "%q comes twice", id)
			seen[id] = true
			position, found := want[id]
			assert.Equal(t, found, progress.Found, "%q", id)
			assert.Equal(t, position, progress.Position, "%q", id)
		}
	}
	assert.Len(t, seen, len(ids))
}

func TestHeadsAndPositionsMeetAcrossPages(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	const aggregates = 8
	for n := range aggregates {
		id := account(fmt.Sprintf("%d", n))
		testjournal.Append(t, s.journal, storage.Commit{
			Aggregate: id, Events: []storage.Event{{Type: "deposited"}},
			// A page holds three of these.
			Snapshot: &journal.Snapshot{Number: 1, Payload: make([]byte, 300<<10)},
		})
		require.NoError(t, s.PutPosition(t.Context(), group, id, 1, uint64(n)))
	}
	pages, met := 0, 0
	for page, err := range s.AggregateProgress(t.Context(), shard, aggregate.ID{}, nil) {
		require.NoError(t, err)
		pages++
		for _, progress := range page {
			assert.True(t, progress.Found)
			assert.Equal(t, progress.Head.Aggregate.Value, fmt.Sprintf("%d", progress.Position))
			met++
		}
	}
	assert.Greater(t, pages, 1)
	assert.Equal(t, aggregates, met)
}

func TestACorruptHeadDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.write(t, account("a"), 1)
	s.write(t, account("b"), 1)
	s.corruptHead(t, account("a"))
	var corrupt []*journal.CorruptItemError
	met := 0
	for page, err := range s.AggregateProgress(t.Context(), shard, aggregate.ID{}, func(err *journal.CorruptItemError) { corrupt = append(corrupt, err) }) {
		require.NoError(t, err)
		met += len(page)
	}
	assert.Equal(t, 1, met)
	require.Len(t, corrupt, 1)
	assert.Equal(t, account("a"), corrupt[0].Aggregate)

	s.put(t, "group/account-0", "position/b-0", item{"position": text("five")})
	for _, err := range s.AggregateProgress(t.Context(), shard, aggregate.ID{}, func(*journal.CorruptItemError) {}) {
		require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	}
}
