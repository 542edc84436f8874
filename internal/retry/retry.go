// Package retry provides waits and pauses for loops that try again.
package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Soon is the shortest time of a timer that a loop waits for. A timer of 0 runs in the goroutine
// that receives from it. With the race detector, two of these at the same time in one bubble of
// testing/synctest crash Go 1.26, because both use the race context of the bubble.
const Soon = time.Nanosecond

// Sleep waits for d. It returns false, at once, if ctx has ended or a backoff says stop.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d == backoff.Stop || ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(max(d, Soon))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Pauses returns pauses that grow from first to most, each with jitter, and stop after limit; 0
// means no limit.
func Pauses(first, most, limit time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first), backoff.WithMaxInterval(most), backoff.WithMaxElapsedTime(limit))
}

// Jitter returns d plus or minus a half, so that many processes do not do the same at one time.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(max(1, d)) }

// Backoff returns a pause that doubles from first to most with each failure.
func Backoff(first, most time.Duration, failures int) time.Duration {
	doublings := max(0, failures-1)
	if doublings > 40 || first > most>>doublings {
		return most
	}
	return first << doublings
}
