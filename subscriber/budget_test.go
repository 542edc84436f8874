package subscriber

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func lanesFree() bool { return false }
func lanesBusy() bool { return true }

// reserving tells on a channel when it has reserved.
func reserving(t *testing.T, b *budget, n int, busy func() bool) <-chan error {
	t.Helper()
	reserved := make(chan error, 1)
	go func() { reserved <- b.reserve(t.Context(), n, busy) }()
	return reserved
}

func notYet(t *testing.T, reserved <-chan error) {
	t.Helper()
	select {
	case err := <-reserved:
		assert.Fail(t, "it should wait", err)
	case <-time.After(3 * lull):
	}
}

func TestWhileAllLanesAreBusyHalfOfTheBufferIsFilled(t *testing.T) {
	t.Parallel()
	b := &budget{size: 100}
	require.NoError(t, b.reserve(t.Context(), 49, lanesBusy))
	require.NoError(t, b.reserve(t.Context(), 10, lanesBusy))
	reserved := reserving(t, b, 1, lanesBusy)
	notYet(t, reserved)
	b.give(9)
	notYet(t, reserved)
	b.give(1)
	require.NoError(t, <-reserved)
}

func TestWhereLanesAreFreeAllOfTheBufferIsFilled(t *testing.T) {
	t.Parallel()
	b := &budget{size: 100}
	b.take(50)
	require.NoError(t, b.reserve(t.Context(), 50, lanesFree))
	reserved := reserving(t, b, 1, lanesFree)
	notYet(t, reserved)
	b.give(1)
	require.NoError(t, <-reserved)
}

func TestALaneThatBecomesFreeIsNoticed(t *testing.T) {
	t.Parallel()
	b := &budget{size: 100}
	b.take(50)
	release := make(chan struct{})
	l := &lanes{max: 1, free: b.changed, serve: func(*stream) bool { <-release; return false }}
	l.run(&stream{})
	reserved := reserving(t, b, 1, l.busy)
	notYet(t, reserved)
	close(release)
	require.NoError(t, <-reserved)
}

func TestWhoeverStopsWaitingReservesNothing(t *testing.T) {
	t.Parallel()
	b := &budget{size: 100}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.reserve(ctx, 60, lanesFree), context.Canceled)
	assert.Zero(t, b.used)
}

func TestHoweverManyStreamsTakeTheirShareSomethingIsLeft(t *testing.T) {
	t.Parallel()
	b := &budget{size: 32 << 20, lanes: 64}
	assert.Equal(t, 4<<20, b.share(), "a stream alone")
	for range 63 {
		b.take(b.share())
	}
	assert.Greater(t, b.size-b.used, 4<<20)
	b.take(b.size)
	assert.Equal(t, 128<<10, b.share())
	small := &budget{size: 1 << 10, lanes: 64}
	assert.Equal(t, minShare, small.share())
}
