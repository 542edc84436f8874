package retry

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Quota limits how often throttled requests are repeated, in proportion to the requests that
// succeed. A repetition takes a token. Each success returns one, and a few come back with time, so
// that a caller is not starved if nothing succeeds. While there are no tokens, Take waits for one.
//
// The retry quota of the AWS SDK is similar, but a call without a token fails at once, and no token
// comes back with time. The zero value is not usable; see NewQuota. It is safe for concurrent use.
type Quota struct {
	most, perSecond float64

	mu      sync.Mutex
	tokens  float64
	at      time.Time // when tokens was up to date
	waiting list.List // of chan struct{}, the oldest first
	timer   *time.Timer
}

// NewQuota returns a quota with its most tokens, of which perSecond come back with time.
func NewQuota(most, perSecond float64) *Quota {
	return &Quota{most: most, perSecond: perSecond, tokens: most, at: time.Now()}
}

// Fill returns the part of the tokens that is left, from 0 to 1.
func (q *Quota) Fill() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refill(0)
	return q.tokens / q.most
}

// Succeeded returns a token for a request that was not throttled.
func (q *Quota) Succeeded() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refill(1)
	q.grant()
}

// Take takes a token. It waits for one, but not longer than within. It returns false if there was
// none, or if ctx ended. Callers get tokens in the order in which they wait.
func (q *Quota) Take(ctx context.Context, within time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	q.mu.Lock()
	q.refill(0)
	if q.tokens >= 1 && q.waiting.Len() == 0 {
		q.tokens--
		q.mu.Unlock()
		return true
	}
	granted := make(chan struct{})
	place := q.waiting.PushBack(granted)
	q.grant()
	q.mu.Unlock()

	timer := time.NewTimer(max(within, Soon))
	defer timer.Stop()
	select {
	case <-granted:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-granted: // meanwhile
		return true
	default:
	}
	q.waiting.Remove(place)
	q.grant() // it stops the timer if nobody waits
	return false
}

// refill adds the tokens that have come back with time, and some more. The caller holds mu.
func (q *Quota) refill(more float64) {
	now := time.Now()
	q.tokens = min(q.most, q.tokens+more+q.perSecond*max(0, now.Sub(q.at)).Seconds())
	q.at = now
}

// grant passes tokens to callers that wait, and sets the timer for the next token. The caller holds
// mu.
func (q *Quota) grant() {
	for q.tokens >= 1 && q.waiting.Len() > 0 {
		q.tokens--
		close(q.waiting.Remove(q.waiting.Front()).(chan struct{}))
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	if q.waiting.Len() > 0 {
		// The next token is a little late rather than early, so that the timer is not set again.
		missing := time.Duration((1-q.tokens)/q.perSecond*float64(time.Second)) + time.Microsecond
		q.timer = time.AfterFunc(missing, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.refill(0)
			q.grant()
		})
	}
}
