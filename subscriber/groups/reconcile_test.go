package groups_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// importEarly appends an event that is dated long before all others, like an import.
func (s store) importEarly(t *testing.T, id string, after int) {
	t.Helper()
	early := open(t, s.Client(), journal.Config{Now: func() time.Time { return time.UnixMilli(1) }})
	early.write(t, id, after, 1)
}

// calm returns a config with long poll intervals, for tests in which minutes pass.
func (s store) calm() subscriber.Config {
	config := s.quick()
	config.Timing.PollInterval, config.Timing.MaxPollInterval, config.Timing.CommitInterval = time.Second, 10*time.Second, time.Second
	config.Timing.LeaseDuration, config.Timing.ReconcileInterval = 20*time.Second, 24*time.Hour
	return config
}

// within waits for up to ten minutes of the bubble's time.
func within(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for range 60 {
		if condition() {
			return
		}
		time.Sleep(10 * time.Second)
	}
	require.FailNow(t, what)
}

func TestAReconciliationFindsWhatWasImportedBehindTheCursor(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		var got handled
		got.consume(t, s.calm(), nil)
		got.consume(t, s.calm(), nil)
		for _, id := range []string{"x", "y", "z"} {
			s.write(t, id, 0, 1)
		}
		s.caughtUp(t)
		time.Sleep(time.Minute)
		s.importEarly(t, "w", 0)
		s.importEarly(t, "x", 1)
		time.Sleep(5 * time.Minute)
		require.Empty(t, got.of("w"), "nothing shows it")

		require.NoError(t, s.Reconcile(t.Context()))
		left, err := s.Reconciling(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{0, 1}, left)
		var seen []int
		require.NoError(t, s.WaitReconciled(t.Context(), func(left int) { seen = append(seen, left) }))

		assert.Len(t, got.of("w"), 1)
		assert.Equal(t, 2, seen[0])
		assert.Equal(t, 0, seen[len(seen)-1])
		assert.IsDecreasing(t, slices.Compact(seen))
		assert.Equal(t, expect("x", 1, 2), got.of("x"))
	})
}

func TestAReconciliationCostsThreeWritesForAShard(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
		s := open(t, db.Client(), journal.Config{})
		s.owned(t)
		rows := checkpoint.New(s.Journal)
		shard := checkpoint.Shard{Group: checkpoint.Group{Name: group}, Topic: topic, Number: 2}
		require.NoError(t, rows.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: at(5), Reconciled: at(6)}))
		recording := db.Record()
		defer recording.Stop()

		require.NoError(t, s.Reconcile(t.Context()))

		_, write := recording.Units()
		assert.InDelta(t, 4*3, write, 0.1)
		progress, err := rows.Progress(t.Context(), shard)
		require.NoError(t, err)
		assert.True(t, progress.Cursor.Equal(at(5)), "the cursor stays")
		assert.True(t, progress.Reconciled.Equal(time.UnixMilli(0)))
		require.ErrorIs(t, rows.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: at(7), Reconciled: at(7)}), checkpoint.ErrFenced, "the former owner's write")
		require.ErrorIs(t, s.Of("nobody", topic).Reconcile(t.Context()), groups.ErrNoGroup)
	})
}

func TestAReconciliationContinuesWhereAnErrorEndedIt(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		s := open(t, db.Client(), journal.Config{})
		for n := range 9 {
			s.write(t, string(rune('a'+n)), 0, 1)
		}
		config := s.calm()
		config.Journal = open(t, db.Client(testdb.Once), journal.Config{}).Journal
		var got handled
		got.consume(t, config, nil)
		s.caughtUp(t)
		s.importEarly(t, "h", 1)
		onHeads := dynamotest.Matching(func(_ string, in any) bool {
			q, is := in.(*dynamodb.QueryInput)
			return is && strings.Contains(*q.TableName, "snapshot") && q.IndexName == nil
		})
		db.Inject(dynamotest.SmallPages(3), dynamotest.On("Query"), onHeads)
		failed := db.Inject(dynamotest.Throttle(), dynamotest.On("Query"), onHeads, dynamotest.After(2), dynamotest.Times(2))
		recording := db.Record()
		defer recording.Stop()

		require.NoError(t, s.Reconcile(t.Context()))

		within(t, "the reconciliation continues", func() bool { return len(got.of("h")) == 2 && failed.Fired() == 2 })
		time.Sleep(time.Minute)
		pages := 0
		for _, call := range recording.Calls("Query") {
			if call.Tables[0] == "snapshot" && call.Err == nil {
				pages++
			}
		}
		assert.LessOrEqual(t, pages, 4, "three pages of heads, and perhaps an empty one at the end: none is read twice")
	})
}

func TestAWaitForAReconciliationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 3)
		s.owned(t)
		require.NoError(t, s.WaitReconciled(t.Context(), nil), "nothing was asked for")
		require.NoError(t, s.Reconcile(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		err := s.WaitReconciled(ctx, nil)

		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "3 shards are left to compare")
		require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
		require.NoError(t, s.WaitReconciled(t.Context(), nil), "a reset has nothing to compare")
		require.ErrorIs(t, s.Of("nobody", topic).WaitReconciled(t.Context(), nil), groups.ErrNoGroup)
	})
}

func TestAWaitForAReconciliationLeavesOutWhatStaysBlocked(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		var got handled
		got.consume(t, s.calm(), func(payload string) bool { return payload == "w/1" })
		s.write(t, "x", 0, 1)
		s.caughtUp(t)
		time.Sleep(time.Minute)
		s.importEarly(t, "w", 0)
		s.importEarly(t, "x", 1)
		require.NoError(t, s.Reconcile(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()

		require.NoError(t, s.WaitReconciled(ctx, nil))

		assert.Len(t, got.of("x"), 2)
		behind, err := collect(s.Behind(t.Context(), aggregate.ID{}))
		require.NoError(t, err)
		require.Len(t, behind, 1)
		assert.Equal(t, account("w"), behind[0].Aggregate)
	})
}
