package groups_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// A former owner can park an aggregate late: after the next owner has handled the failed event and
// has deleted the aggregate's entry. Nothing refuses that write, since there is no row with a newer
// epoch any more. The position is beyond the failed event, so the owner after that has to continue.
func TestAnAggregateIsNotParkedByAnEventThatTheGroupIsBeyond(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 3)
	store := checkpoint.New(s.Journal)
	_, err := store.ModifyMembership(t.Context(), checkpoint.Key{Group: group, Topic: topic}, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		r, first := r.Join(checkpoint.Member{})
		r, second := r.Join(checkpoint.Member{})
		return r.Take(first, []int{0}).Take(second, []int{0}).Leave(first, second), nil
	})
	require.NoError(t, err)
	require.NoError(t, store.PutPosition(t.Context(), checkpoint.Group{Name: group}, account("x"), 2, 2))
	require.NoError(t, store.ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{
		Aggregate: account("x"), Head: 2, Parked: &checkpoint.Failure{Number: 1, At: time.Now(), Reason: "late"},
	}))

	var got handled
	got.consume(t, s.alone(), nil)

	eventually(t, "the next event comes", func() bool { return got.count() == 1 })
	assert.Equal(t, expect("x", 3, 3), got.of("x"))
	s.parked(t, 0)
}
