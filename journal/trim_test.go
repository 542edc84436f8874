package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

var trimmed = aggregate.ID{Type: "mail", Value: "publisher"}

func TestATrimNeedsNoSnapshot(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for n := range 5 {
			s.write(t, trimmed, n+1, 1)
		}

		require.NoError(t, s.Trim(t.Context(), trimmed, 4))

		assert.Equal(t, []int{4, 5}, s.numbers(t, trimmed))
		head := mustHead(t, s, trimmed)
		assert.Equal(t, uint64(4), head.TruncatedBefore)
		assert.Equal(t, uint64(3), head.Snapshot.Number, "that of the trim")
		s.write(t, trimmed, 6, 1)
		require.NoError(t, s.Trim(t.Context(), trimmed, 3), "what is done already")
		require.NoError(t, s.Trim(t.Context(), trimmed, 7))
		assert.Empty(t, s.numbers(t, trimmed))
		require.ErrorIs(t, s.Trim(t.Context(), trimmed, 8), journal.ErrNotCovered)
		_, err := read(t, s.Engine, trimmed, 1, 6)
		require.ErrorAs(t, err, new(*journal.TruncatedError))
		require.NoError(t, s.Delete(t.Context(), trimmed, 6, journal.RemoveOptions{}))
		require.ErrorAs(t, s.Trim(t.Context(), trimmed, 7), new(*journal.DeletedError))
	})
}

func TestATrimRefusesAnAggregateWithASnapshot(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.covered(t, trimmed, 4)
		require.ErrorIs(t, s.Trim(t.Context(), trimmed, 3), storage.ErrHasState)
		assert.Len(t, s.numbers(t, trimmed), 4)

		require.NoError(t, s.Truncate(t.Context(), trimmed, 3, journal.RemoveOptions{}))
		require.ErrorIs(t, s.Trim(t.Context(), trimmed, 3), storage.ErrHasState)
	})
}
