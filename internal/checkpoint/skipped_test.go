package checkpoint_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// skip skips an event under an epoch, from a position.
func (s store) skip(t *testing.T, id aggregate.ID, epoch, from, number uint64) error {
	t.Helper()
	return s.Skip(t.Context(), group, s.AdvanceItem(group, id, epoch, from, number), checkpoint.Skipped{
		Aggregate: id, Number: number, EventType: "deposited", At: time.UnixMilli(5), Reason: "it failed", Epoch: epoch,
	})
}

func (s store) skipped(t *testing.T) (records []checkpoint.Skipped) {
	t.Helper()
	for e, err := range s.Skipped(t.Context(), shard) {
		require.NoError(t, err)
		records = append(records, e)
	}
	return records
}

func TestAnEventIsSkippedTogetherWithThePosition(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 0, 2))

	require.NoError(t, s.skip(t, x, 1, 2, 5))

	assert.Equal(t, []checkpoint.Skipped{
		{Aggregate: x, Number: 5, EventType: "deposited", At: time.UnixMilli(5), Reason: "it failed", Epoch: 1},
	}, s.skipped(t))
	position, _ := s.claim(t, group, 1)
	assert.EqualValues(t, 5, position)
	under, err := s.SkippedUnder(t.Context(), group, x, 5, 1)
	require.NoError(t, err)
	assert.True(t, under)
	under, err = s.SkippedUnder(t.Context(), group, x, 5, 2)
	require.NoError(t, err)
	assert.False(t, under, "the event was skipped in another term")
	under, err = s.SkippedUnder(t.Context(), group, x, 4, 1)
	require.NoError(t, err)
	assert.False(t, under)
}

func TestAFencedMemberLeavesNoRecord(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	_, found := s.claim(t, group, 2)
	require.False(t, found)

	require.ErrorIs(t, s.skip(t, x, 1, 0, 1), checkpoint.ErrFenced)
	require.NoError(t, s.PutSkipped(t.Context(), group, checkpoint.Skipped{Aggregate: x, Number: 1, Epoch: 3}))
	require.ErrorIs(t, s.PutSkipped(t.Context(), group, checkpoint.Skipped{Aggregate: x, Number: 1, Epoch: 2}), checkpoint.ErrFenced)
	records := s.skipped(t)
	require.Len(t, records, 1)
	assert.EqualValues(t, 3, records[0].Epoch)

	old := records[0]
	old.Epoch = 2
	require.ErrorIs(t, s.RemoveSkipped(t.Context(), group, old), checkpoint.ErrFenced, "it was written again since")
	require.NoError(t, s.RemoveSkipped(t.Context(), group, records[0]))
	require.NoError(t, s.RemoveSkipped(t.Context(), group, records[0]), "again")
	assert.Empty(t, s.skipped(t))
}

// If an earlier attempt of the same owner has moved the position, no other member has taken over.
// The caller must read the position again.
func TestASkipThatWasWrittenBeforeIsNotReportedAsFenced(t *testing.T) {
	t.Parallel()
	s := setup(t, 1, testdb.Once)
	s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	require.Error(t, s.skip(t, x, 1, 0, 1))

	err := s.skip(t, x, 1, 0, 1)

	require.Error(t, err)
	require.NotErrorIs(t, err, checkpoint.ErrFenced)
	position, _ := s.claim(t, group, 1)
	assert.EqualValues(t, 1, position)
	under, err := s.SkippedUnder(t.Context(), group, x, 1, 1)
	require.NoError(t, err)
	assert.True(t, under)
}

func TestARecordOfAnyIdFitsIntoItsKeyAndStaysShort(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	id := aggregate.ID{Type: "a", Value: strings.Repeat("v", aggregate.MaxIDBytes-2)}
	k := checkpoint.Shard{Group: group, Topic: "a"}
	require.NoError(t, s.PutSkipped(t.Context(), group, checkpoint.Skipped{
		Aggregate: id, Number: math.MaxUint64, Reason: strings.Repeat("é", 5000), EventType: "a\xff",
	}))
	for e, err := range s.Skipped(t.Context(), k) {
		require.NoError(t, err)
		assert.Equal(t, id, e.Aggregate)
		assert.Equal(t, uint64(math.MaxUint64), e.Number)
		assert.Equal(t, strings.Repeat("é", 512), e.Reason)
		assert.Equal(t, "a?", e.EventType)
	}
	for e, err := range s.SkippedBehind(t.Context(), group, id, math.MaxUint64) {
		require.NoError(t, err)
		require.Fail(t, "there is no record behind the last event", "%v", e)
	}
}

func TestACorruptRecordIsReportedAsCorrupt(t *testing.T) {
	t.Parallel()
	for sort, attributes := range map[string]item{
		"event/x":                  {},
		"event/x-0000000000000001": {"number": text("one")},
	} {
		s := setup(t, 1)
		s.put(t, "group/account-0", sort, attributes)
		for _, err := range s.Skipped(t.Context(), shard) {
			require.ErrorIs(t, err, checkpoint.ErrCorrupt, sort)
		}
	}
}

func TestAStopIsAPauseWithItsReason(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	seen := s.create(t, []int{0})
	why := checkpoint.Stopped{Aggregate: x, Number: 3, EventType: "deposited", At: time.UnixMilli(7), Reason: "it failed"}

	s.change(t, key, seen, seen.Stop(why))
	now := s.read(t)
	assert.True(t, now.Paused)
	assert.Equal(t, &why, now.Stopped)
	assert.True(t, now.Stopped.Same(why))
	assert.Equal(t, &why, now.Pause().Stopped, "a pause leaves the reason")
	take, give := now.Share(1)
	assert.Empty(t, take)
	assert.Equal(t, []int{0}, give)

	s.change(t, key, now, now.Resume())
	now = s.read(t)
	assert.False(t, now.Paused)
	assert.Nil(t, now.Stopped)
	assert.EqualValues(t, 1, now.Resumed)
	assert.EqualValues(t, 1, now.Resume().Resumed, "there was no pause to end")
	var none *checkpoint.Stopped
	assert.False(t, none.Same(why))
}
