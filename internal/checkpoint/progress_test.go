package checkpoint_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

func (s store) progress(t *testing.T) checkpoint.Progress {
	t.Helper()
	progress, err := s.Progress(t.Context(), shard)
	require.NoError(t, err)
	return progress
}

func TestACursorBelongsToTheNewestEpoch(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	assert.Equal(t, checkpoint.Progress{}, s.progress(t))

	at := time.UnixMilli
	require.NoError(t, s.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: at(77), Reconciled: at(5)}))
	require.NoError(t, s.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 2, Cursor: at(66), Reconciled: at(6)}))
	require.ErrorIs(t, s.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: at(99), Reconciled: at(9)}), checkpoint.ErrFenced)

	assert.Equal(t, checkpoint.Progress{Cursor: at(66), Reconciled: at(6)}, s.progress(t))
	next := checkpoint.Shard{Group: checkpoint.Group{Name: "group", Resets: 1}, Topic: "account"}
	require.NoError(t, s.SaveCursor(t.Context(), next, checkpoint.CursorRow{Epoch: 1}))
	progress, err := s.Progress(t.Context(), next)
	require.NoError(t, err)
	assert.Equal(t, at(0), progress.Cursor, "a cursor is never before 1970")
	assert.Equal(t, at(66), s.progress(t).Cursor, "the cursor from before the reset stays")
}

func TestTheBehindListStaysUntilANewOwnerChangesIt(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	other := account("y/with a slash")
	parked := &checkpoint.Failure{Number: 3, At: time.UnixMilli(5), Reason: "broken"}
	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: x, Head: 7}))
	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: other, Head: 8, Parked: parked}))
	_, _, err := s.Claim(t.Context(), group, x, 1) // a position is not part of the progress
	require.NoError(t, err)
	assert.Equal(t, []checkpoint.Behind{{Aggregate: x, Head: 7, Epoch: 1}, {Aggregate: other, Head: 8, Parked: parked, Epoch: 1}}, s.progress(t).Behind)

	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 2}, checkpoint.Behind{Aggregate: x, Head: 9}))
	require.ErrorIs(t, s.UnlistBehind(t.Context(), group, x, checkpoint.Revision{Epoch: 1}), checkpoint.ErrFenced)
	require.ErrorIs(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: x, Parked: parked}), checkpoint.ErrFenced)
	b, listed, err := s.Listed(t.Context(), group, x)
	require.NoError(t, err)
	assert.True(t, listed)
	assert.Equal(t, checkpoint.Behind{Aggregate: x, Head: 9, Epoch: 2}, b)
	require.NoError(t, s.UnlistBehind(t.Context(), group, x, checkpoint.Revision{Epoch: 2}))
	require.NoError(t, s.UnlistBehind(t.Context(), group, x, checkpoint.Revision{Epoch: 2}), "again")
	_, listed, err = s.Listed(t.Context(), group, x)
	require.NoError(t, err)
	assert.False(t, listed)
	assert.Len(t, s.progress(t).Behind, 1)

	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 2}, checkpoint.Behind{Aggregate: other, Head: 8}))
	assert.Equal(t, []checkpoint.Behind{{Aggregate: other, Head: 8, Epoch: 2}}, s.progress(t).Behind, "it is no longer parked")
}

func TestAnEntryHasTheLastFailureUntilItIsWrittenWithoutOne(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	failure := &checkpoint.Failure{Number: 3, At: time.UnixMilli(5), Due: time.UnixMilli(7), Reason: "broken, once"}
	parked := &checkpoint.Failure{Number: 4, At: time.UnixMilli(6), Reason: "broken, 2 times"}
	for _, b := range []checkpoint.Behind{
		{Aggregate: x, Head: 7, Failure: failure, Epoch: 1},
		{Aggregate: x, Head: 7, Epoch: 1},
		{Aggregate: x, Head: 7, Failure: failure, Epoch: 1},
		{Aggregate: x, Head: 7, Parked: parked, Epoch: 1},
		{Aggregate: x, Head: 7, Failure: failure, Epoch: 1},
	} {
		require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, b))
		assert.Equal(t, []checkpoint.Behind{b}, s.progress(t).Behind)
	}
}

// A member of an earlier version reads and writes parked_at, number and reason, and never
// failed_at.
func TestAFailureIsNoneOnceAnEarlierVersionHasWrittenTheEntry(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	listed := func() checkpoint.Behind {
		b, _, err := s.Listed(t.Context(), group, x)
		require.NoError(t, err)
		return b
	}
	s.put(t, "group/account-0", "behind/x", item{"head": number("7"), "failed_at": number("5")})
	assert.Equal(t, checkpoint.Behind{Aggregate: x, Head: 7}, listed(), "the number and the reason were removed")

	s.put(t, "group/account-0", "behind/x", item{
		"head": number("7"), "failed_at": number("5"), "parked_at": number("9"), "number": number("3"), "reason": text("broken"),
	})
	assert.Equal(t, checkpoint.Behind{Aggregate: x, Head: 7, Parked: &checkpoint.Failure{Number: 3, At: time.UnixMilli(9), Reason: "broken"}}, listed())
}

func TestALateWriteToAnEntryChangesNothingThatWasWrittenSince(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	at := func(number uint64) checkpoint.Revision { return checkpoint.Revision{Epoch: 3, Number: number} }
	parked := checkpoint.Behind{Aggregate: x, Head: 7, Parked: &checkpoint.Failure{Number: 7, At: time.UnixMilli(5)}}
	require.NoError(t, s.ListBehind(t.Context(), group, at(5), parked))
	require.NoError(t, s.ListBehind(t.Context(), group, at(5), parked), "a repetition after a lost reply")

	require.ErrorIs(t, s.ListBehind(t.Context(), group, at(4), checkpoint.Behind{Aggregate: x, Head: 7}), checkpoint.ErrFenced)
	require.ErrorIs(t, s.UnlistBehind(t.Context(), group, x, at(4)), checkpoint.ErrFenced)

	b, _, err := s.Listed(t.Context(), group, x)
	require.NoError(t, err)
	assert.NotNil(t, b.Parked)
	require.NoError(t, s.UnlistBehind(t.Context(), group, x, at(6)))
}

// With an old list and a new cursor, no member would know of the aggregate that was listed between
// the two reads.
func TestTheCursorIsReadBeforeTheListThatItReliesOn(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	early, late := account("a"), account("z")
	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: late, Head: 7}))
	require.NoError(t, s.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: time.UnixMilli(5), Reconciled: time.UnixMilli(0)}))
	s.proxy.Inject(dynamotest.SmallPages(1), dynamotest.On("Query"))
	// A former owner that does not know that it is fenced.
	s.proxy.Inject(dynamotest.PauseReply(func(ctx context.Context) {
		assert.NoError(t, s.ListBehind(ctx, group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: early, Head: 8}))
		assert.NoError(t, s.SaveCursor(ctx, shard, checkpoint.CursorRow{Epoch: 1, Cursor: time.UnixMilli(9), Reconciled: time.UnixMilli(0)}))
	}), dynamotest.On("Query"), dynamotest.Times(1))

	progress := s.progress(t)

	listed := slices.ContainsFunc(progress.Behind, func(b checkpoint.Behind) bool { return b.Aggregate == early })
	assert.True(t, listed || progress.Cursor.Before(time.UnixMilli(9)), "%+v", progress)
	assert.Equal(t, late, progress.Behind[len(progress.Behind)-1].Aggregate, "by key")
}

func TestTheReasonOfAParkedAggregateIsTextOfBoundedLength(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	for reason, want := range map[string]func(string) bool{
		strings.Repeat("ä", 5000): func(got string) bool { return len(got) <= 1024 && len(got) > 1000 },
		"bad \xff byte":           func(got string) bool { return got == "bad ? byte" },
		"":                        func(got string) bool { return got == "" },
	} {
		require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: x, Parked: &checkpoint.Failure{Reason: reason}}))
		b, _, err := s.Listed(t.Context(), group, x)
		require.NoError(t, err)
		require.NotNil(t, b.Parked)
		assert.True(t, utf8.ValidString(b.Parked.Reason))
		assert.True(t, want(b.Parked.Reason), b.Parked.Reason)
	}
}

func TestTheReasonOfABlockedAggregateIsTextOfBoundedLength(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	b := checkpoint.Behind{Aggregate: x, Failure: &checkpoint.Failure{Number: 1, Reason: strings.Repeat("\xffä", 5000)}}
	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, b))
	b, _, err := s.Listed(t.Context(), group, x)
	require.NoError(t, err)
	require.NotNil(t, b.Failure)
	assert.True(t, utf8.ValidString(b.Failure.Reason))
	assert.Equal(t, strings.Repeat("ä", 100), b.Failure.Reason)
}

func TestCorruptProgressIsReportedAsCorrupt(t *testing.T) {
	t.Parallel()
	for sort, attribute := range map[string]string{"cursor": "occurred_at", "behind/x": "head"} {
		s := setup(t, 1)
		s.put(t, "group/account-0", sort, item{attribute: text("soon")})
		_, err := s.Progress(t.Context(), shard)
		require.ErrorIs(t, err, checkpoint.ErrCorrupt, sort)
	}
	s := setup(t, 1)
	s.put(t, "group/account-0", "cursor", item{"reconciled_at": text("soon")})
	_, err := s.Progress(t.Context(), shard)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	for _, at := range []string{"parked_at", "failed_at"} {
		for _, attribute := range []string{"head", at, "number"} {
			row := item{at: number("5"), "number": number("3")}
			row[attribute] = text("soon")
			s.put(t, "group/account-0", "behind/x", row)
			_, _, err = s.Listed(t.Context(), group, x)
			require.ErrorIs(t, err, checkpoint.ErrCorrupt, attribute)
		}
	}
}
