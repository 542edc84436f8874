// Package await waits in tests for what must happen. A test fails if it does not happen within
// Patience.
package await

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience is how long a test waits before it fails. It is no claim about speed.
const Patience = 2 * time.Minute

// Receive returns the next value of a channel. What says what the value is.
func Receive[T any](t testing.TB, from <-chan T, what string) (value T) {
	t.Helper()
	value, open := receive(t, from, what)
	require.True(t, open, "the channel was closed instead of: "+what)
	return value
}

// End waits until a channel is closed, or has a value. What says what this means.
func End[T any](t testing.TB, c <-chan T, what string) {
	t.Helper()
	receive(t, c, what)
}

func receive[T any](t testing.TB, from <-chan T, what string) (value T, open bool) {
	t.Helper()
	select {
	case value, open = <-from:
	case <-time.After(Patience):
		require.FailNow(t, "waited in vain: "+what)
	}
	return value, open
}

// True waits until a condition is true. What says what it means.
func True(t testing.TB, what string, condition func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Patience); !condition(); {
		require.True(t, time.Now().Before(end), what)
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}
