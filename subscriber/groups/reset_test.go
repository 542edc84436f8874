package groups_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// rowsOf returns the rows that were written after a number of resets.
func (s store) rowsOf(t *testing.T, resets string) (rows []string) {
	t.Helper()
	for _, row := range s.rows(t) {
		partition, sort, _ := strings.Cut(row, " ")
		own := resets == "0" && strings.Count(partition, "/") == 1 || strings.HasSuffix(partition, "/"+resets)
		if own && sort != "shards" {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestAfterAResetAllEventsComeAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 4)
		var got handled
		got.consume(t, s.quick(), nil)
		got.consume(t, s.quick(), nil)
		for _, id := range []string{"x", "y", "z"} {
			s.write(t, id, 0, 5)
		}
		eventually(t, "all were handled", func() bool { return got.count() == 15 })
		s.caughtUp(t)

		require.NoError(t, s.Pause(t.Context()))
		require.NoError(t, s.WaitIdle(t.Context()))
		got.forget()
		require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))

		g := mustGet(t, s)
		assert.True(t, g.Paused, "still")
		assert.EqualValues(t, 1, g.Resets)
		lag := s.lag(t, groups.LagOptions{})
		assert.EqualValues(t, 15, lag.Events)

		require.NoError(t, s.Resume(t.Context()))
		eventually(t, "they come again", func() bool { return got.count() == 15 })
		s.caughtUp(t)
		for _, id := range []string{"x", "y", "z"} {
			assert.Equal(t, expect(id, 1, 5), got.of(id))
		}
	})
}

func TestAGroupCanBeResetWhileItWorks(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 4)
		var got handled
		got.consume(t, s.quick(), nil)
		got.consume(t, s.quick(), nil)
		s.write(t, "x", 0, 50)
		eventually(t, "some were handled", func() bool { return got.count() > 10 })

		before := len(got.of("x"))
		require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
		s.write(t, "x", 50, 10)

		s.caughtUp(t)
		// A member that has not noticed the reset continues where it was.
		missing := expect("x", 1, 60)
		for _, payload := range got.of("x")[before:] {
			if len(missing) > 0 && payload == missing[0] {
				missing = missing[1:]
			}
		}
		assert.Empty(t, missing, "all of them came again, in order")
	})
}

func TestAResetToATimeLeavesOutWhatOccurredBefore(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		var got handled
		got.consume(t, s.quick(), nil)
		s.write(t, "x", 0, 2)
		tick(t)
		between := time.Now()
		s.write(t, "x", 2, 2)
		s.write(t, "y", 0, 1)
		eventually(t, "all were handled", func() bool { return got.count() == 5 })
		s.caughtUp(t)

		require.NoError(t, s.Pause(t.Context()))
		require.NoError(t, s.WaitIdle(t.Context()))
		got.forget()
		require.NoError(t, s.Reset(t.Context(), subscriber.At(between), nil))
		require.NoError(t, s.Resume(t.Context()))

		eventually(t, "later ones come again", func() bool { return got.count() == 3 })
		assert.Equal(t, expect("x", 3, 4), got.of("x"))
		assert.Equal(t, expect("y", 1, 1), got.of("y"))

		time.Sleep(3 * time.Second) // Now begins 2 seconds early
		require.NoError(t, s.Pause(t.Context()))
		require.NoError(t, s.WaitIdle(t.Context()))
		got.forget()
		require.NoError(t, s.Reset(t.Context(), subscriber.Now(), nil))
		require.NoError(t, s.Resume(t.Context()))
		s.write(t, "x", 4, 1)
		eventually(t, "only new events are delivered", func() bool { return got.count() == 1 })
		assert.Equal(t, expect("x", 5, 5), got.of("x"))
	})
}

// after returns the store as it is after some time.
func (s store) after(t *testing.T, d time.Duration) store {
	t.Helper()
	return open(t, s.Client(), journal.Config{Now: func() time.Time { return time.Now().Add(d) }})
}

func TestTheRowsOfBeforeAResetStayForTheFenceTime(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.begin(t, time.Time{})
	s.acked(t, "x", 3)
	s.acked(t, "y", 3)
	require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
	g := mustGet(t, s)
	assert.WithinRange(t, g.OldRowsUntil, time.Now().Add(groups.FenceTime-time.Minute), time.Now().Add(groups.FenceTime+time.Hour))

	early := s.after(t, groups.FenceTime-time.Minute)
	until, err := early.CleanUp(t.Context(), func(int) { assert.Fail(t, "a row was deleted") })
	require.NoError(t, err)
	assert.Equal(t, g.OldRowsUntil, until)
	require.NoError(t, early.Reset(t.Context(), subscriber.Beginning(), nil))
	assert.Len(t, s.rowsOf(t, "0"), 2)

	late, removed := s.after(t, groups.FenceTime+time.Hour), 0
	until, err = late.CleanUp(t.Context(), func(rows int) { removed += rows })
	require.NoError(t, err)
	assert.True(t, until.After(g.OldRowsUntil), "the rows of the second reset stay")
	assert.Equal(t, 2, removed)
	assert.Empty(t, s.rowsOf(t, "0"))
}

func TestAResetDeletesRowsOfEarlierResetsOnce(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	s := open(t, db.Client(), journal.Config{})
	s.begin(t, time.Time{})
	s.acked(t, "x", 3)
	require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
	late, removed := s.after(t, groups.FenceTime+time.Hour), 0
	recording := db.Record()
	defer recording.Stop()

	require.NoError(t, late.Reset(t.Context(), subscriber.Beginning(), func(rows int) { removed += rows }))

	assert.Equal(t, 1, removed)
	assert.Empty(t, s.rowsOf(t, "0"))
	assert.Equal(t, 4, recording.Counts()["Query"], "one for each shard")
	until, err := late.CleanUp(t.Context(), nil)
	require.NoError(t, err)
	assert.False(t, until.IsZero())
	assert.Equal(t, 4, recording.Counts()["Query"], "these rows are not searched for again")
}

func TestAResetThatCannotDeleteOldRowsIsAReset(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 2))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	s.begin(t, time.Time{})
	s.acked(t, "x", 3)
	require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
	late := s.after(t, groups.FenceTime+time.Hour)
	cut := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("BatchWriteItem"))

	err := late.Reset(t.Context(), subscriber.Beginning(), nil)
	require.ErrorIs(t, err, groups.ErrLeftovers)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	g := mustGet(t, s)
	assert.EqualValues(t, 2, g.Resets)
	assert.Len(t, s.rowsOf(t, "0"), 1)

	cut.Remove()
	_, err = late.CleanUp(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, s.rowsOf(t, "0"))
	_, err = late.CleanUp(t.Context(), nil)
	require.NoError(t, err, "again")
}
