package retry_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// take returns how long a caller waited for a token, and whether it got one.
func take(ctx context.Context, q *retry.Quota, within time.Duration) (waited time.Duration, got bool) {
	began := time.Now()
	got = q.Take(ctx, within)
	return time.Since(began).Round(time.Millisecond), got
}

func TestARepetitionWaitsForATokenThatTimeReturns(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		q := retry.NewQuota(2, 10)
		for range 2 {
			waited, got := take(t.Context(), q, time.Second)
			assert.True(t, got)
			assert.Zero(t, waited)
		}
		assert.Zero(t, q.Fill())

		waited, got := take(t.Context(), q, time.Second)
		assert.True(t, got)
		assert.Equal(t, 100*time.Millisecond, waited)

		waited, got = take(t.Context(), q, 50*time.Millisecond)
		assert.False(t, got, "there is none in time")
		assert.Equal(t, 50*time.Millisecond, waited)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		assert.False(t, q.Take(ended, time.Second))
		time.Sleep(time.Hour)
		assert.InDelta(t, 1, q.Fill(), 0, "it has no more than its most")
	})
}

func TestASuccessReturnsATokenToTheCallerThatHasWaitedLongest(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		q := retry.NewQuota(1, 0.001)
		assert.True(t, q.Take(t.Context(), 0))
		var mu sync.Mutex
		var order []int
		var callers sync.WaitGroup
		for n := range 4 {
			callers.Add(1)
			go func() {
				defer callers.Done()
				within := time.Minute
				if n == 1 {
					within = time.Second // it gives up
				}
				if q.Take(t.Context(), within) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, n)
				}
			}()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		assert.Empty(t, order)

		for range 3 {
			q.Succeeded()
			time.Sleep(time.Millisecond)
		}

		callers.Wait()
		assert.Equal(t, []int{0, 2, 3}, order)
	})
}

func TestABudgetCountsTheTimeOfRepetitionsOnce(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		ctx := retry.WithBudget(t.Context(), 10*time.Second)
		b := retry.BudgetOf(ctx)
		sent := time.Now()
		time.Sleep(time.Second)
		first := b.Begin(sent)
		assert.Equal(t, 9*time.Second, b.Left(time.Hour), "the attempt that failed counts")
		second := b.Begin(time.Now())
		time.Sleep(time.Second)
		first()
		first()
		time.Sleep(time.Second)
		second()
		assert.Equal(t, 7*time.Second, b.Left(time.Hour), "two at the same time count once")
		time.Sleep(time.Hour)
		assert.Equal(t, 7*time.Second, b.Left(time.Hour), "other work does not count")
		assert.Equal(t, time.Second, b.Left(time.Second))
		b.Spend(3 * time.Second)
		assert.Equal(t, 4*time.Second, b.Left(time.Hour))

		none := retry.BudgetOf(retry.WithoutBudget(ctx))
		assert.Nil(t, none)
		none.Spend(time.Hour)
		none.Begin(sent)()
		assert.Equal(t, time.Hour, none.Left(time.Hour))
	})
}
