//go:build go1.25

package dynamotest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestALateRequestArrivesByItselfAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(t)
		tab.db.Inject(dynamotest.LateBy(time.Second, 3*time.Second), dynamotest.Times(1))
		require.Error(t, done(t.Context(), tab.once().PutItem, putting("a", 1, nil)))

		time.Sleep(time.Second - 1)
		synctest.Wait()
		assert.Empty(t, tab.get("a", 1))
		time.Sleep(2*time.Second + 1)
		synctest.Wait()
		assert.NotEmpty(t, tab.get("a", 1))
	})
}

func TestARequestThatIsHeldUpArrivesThoughItsClientHasGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(t)
		tab.db.Inject(dynamotest.Congestion(time.Second, 3*time.Second), dynamotest.Times(1))
		recording := tab.db.Record()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		require.ErrorIs(t, done(ctx, tab.once().PutItem, putting("a", 1, nil)), context.DeadlineExceeded)

		time.Sleep(time.Second/2 - 1)
		synctest.Wait()
		assert.Empty(t, tab.get("a", 1))
		time.Sleep(2*time.Second + 1)
		synctest.Wait()
		assert.NotEmpty(t, tab.get("a", 1))
		calls := recording.Calls("PutItem")
		require.Len(t, calls, 2)
		require.ErrorIs(t, calls[0].Err, context.DeadlineExceeded)
		assert.False(t, calls[0].Late)
		require.NoError(t, calls[1].Err)
		assert.True(t, calls[1].Late)
	})
}

func TestAClientThatWaitsGetsTheReplyOfARequestThatIsHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(t)
		tab.put("a", 1, nil)
		tab.db.Inject(dynamotest.Congestion(time.Second, 3*time.Second), dynamotest.On("GetItem"), dynamotest.Times(1))
		tab.db.Inject(dynamotest.PauseReply(func(context.Context) { time.Sleep(time.Hour) }), dynamotest.On("GetItem"), dynamotest.Times(1))
		recording := tab.db.Record()
		begin := time.Now()

		out, err := tab.once().GetItem(t.Context(), getting("a", 1))

		require.NoError(t, err)
		assert.NotEmpty(t, out.Item)
		assert.GreaterOrEqual(t, time.Since(begin), time.Hour+time.Second)
		assert.LessOrEqual(t, time.Since(begin), time.Hour+3*time.Second)
		calls := recording.Calls("GetItem")
		require.Len(t, calls, 1)
		assert.False(t, calls[0].Late)
		assert.Equal(t, []string{"Congestion", "PauseReply"}, calls[0].Faults)
		assert.InDelta(t, 1, calls[0].ReadUnits, 0)
	})
}

func TestCloseReleasesAClientWhoseRequestIsHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(t)
		tab.db.Inject(dynamotest.Congestion(time.Hour, time.Hour))
		got := make(chan error)
		go func() { got <- done(t.Context(), tab.once().PutItem, putting("a", 1, nil)) }()
		synctest.Wait()

		tab.db.Close()

		require.ErrorIs(t, <-got, dynamotest.ErrClosed)
	})
}

func TestCloseDropsWhatIsOnItsWayAndWaitsForWhatArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		db := dynamotest.Open()
		tab := &table{T: t, db: db, client: db.Client()}
		tab.create("tab")
		never := db.Inject(dynamotest.Late(), dynamotest.Key(keyOf("never", 1)))
		db.Inject(dynamotest.LateBy(time.Hour, time.Hour), dynamotest.Key(keyOf("later", 1)))
		db.Inject(dynamotest.LateBy(time.Second, time.Second), dynamotest.Key(keyOf("a", 1)), dynamotest.Times(1))
		db.Inject(dynamotest.Hold(dynamotest.For(time.Minute)))
		var arrived []dynamotest.Call
		db.Observe(func(c dynamotest.Call) {
			if c.Late {
				arrived = append(arrived, c)
			}
		})
		require.Error(t, done(t.Context(), tab.once().PutItem, putting("never", 1, nil)))
		require.Error(t, done(t.Context(), tab.once().PutItem, putting("later", 1, nil)))
		require.Error(t, done(t.Context(), tab.once().TransactWriteItems, adding(1, "a")))
		time.Sleep(2 * time.Second)

		db.Close()

		assert.Len(t, arrived, 1, "the one that was held for a minute")
		assert.Zero(t, never.Arrive())
		require.ErrorIs(t, done(t.Context(), tab.once().PutItem, putting("b", 1, nil)), dynamotest.ErrClosed)
	})
}

func TestAPartitionWorksAtItsLimitInTheTimeOfABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, writes = 100, 1_000
		tab := newTable(t, dynamotest.WithPartitionLimits(limit, 0))
		begin := time.Now()
		for i := range writes {
			for tab.write("a", i, nil) != nil {
				time.Sleep(time.Millisecond)
			}
		}
		// The units of the first second are available immediately.
		assert.InDelta(t, writes/limit-1, time.Since(begin).Seconds(), 0.1)
	})
}
