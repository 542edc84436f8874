package retry_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		began := time.Now()
		assert.True(t, retry.Sleep(t.Context(), time.Hour))
		assert.Equal(t, time.Hour, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.False(t, retry.Sleep(ctx, time.Hour))
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
		assert.False(t, retry.Sleep(ctx, 0), "it has ended already")
		assert.False(t, retry.Sleep(t.Context(), backoff.Stop))
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
	})
}

func TestPausesDoubleUpToTheMost(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{0: 10, 1: 10, 2: 20, 3: 40, 4: 50, 5: 50, 1000: 50} {
		assert.Equal(t, want, retry.Backoff(10, 50, failures), "%d failures", failures)
	}
	assert.Equal(t, time.Duration(math.MaxInt64), retry.Backoff(1<<30, math.MaxInt64, 40), "without overflow")
}

func TestSpreadIsAHalfMoreOrLess(t *testing.T) {
	t.Parallel()
	for range 1000 {
		d := retry.Jitter(100)
		assert.GreaterOrEqual(t, d, time.Duration(50))
		assert.Less(t, d, time.Duration(150))
	}
	assert.Zero(t, retry.Jitter(0))
}

func TestPausesStopAfterTheirLimit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		limited, endless := retry.Pauses(10, 50, time.Minute), retry.Pauses(10, 50, 0)
		assert.NotEqual(t, backoff.Stop, limited.NextBackOff())
		assert.True(t, retry.Sleep(t.Context(), time.Hour))
		assert.Equal(t, backoff.Stop, limited.NextBackOff())
		assert.NotEqual(t, backoff.Stop, endless.NextBackOff())
	})
}
