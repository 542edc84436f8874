//go:build go1.25

package dynamotest_test

import (
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

func TestCloseDropsWhatIsOnItsWayAndWaitsForWhatArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
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
