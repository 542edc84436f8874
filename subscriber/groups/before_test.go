package groups_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestWhatWasParkedLaterIsNotSelected(t *testing.T) {
	t.Parallel()
	_, s := manyParked(t, 8)
	var first time.Time
	for b, err := range s.SelectParked(t.Context(), groups.Selection{}) {
		require.NoError(t, err)
		if first.IsZero() || b.Parked.At.Before(first) {
			first = b.Parked.At
		}
	}
	skipped, err := s.SkipAll(t.Context(), groups.Selection{Before: first})
	require.NoError(t, err)
	assert.Zero(t, skipped)
	s.parked(t, 8)

	skipped, err = s.SkipAll(t.Context(), groups.Selection{Before: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	assert.Equal(t, 8, skipped)

	retried, err := s.RetryAllSkipped(t.Context(), groups.Selection{Before: first})
	require.NoError(t, err)
	assert.Zero(t, retried)
	retried, err = s.RetryAllSkipped(t.Context(), groups.Selection{Before: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	assert.Equal(t, 8, retried)
}
