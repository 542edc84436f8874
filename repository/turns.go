package repository

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// turns makes the calls of Execute on one aggregate run one after the other, as far as they are of
// one repository. Otherwise all of them would read the aggregate, and all except one would have a
// conflict. Nothing relies on it.
type turns struct {
	mu sync.Mutex
	of map[aggregate.ID]*turn
}

// turn is the queue of an aggregate.
type turn struct {
	calls int           // that run or wait; guarded by turns.mu
	free  chan struct{} // has an element while no call has the turn
	begun atomic.Int64  // when the last call began
}

// longTurn is how long a call may have the turn before others go on without it. A decision may take
// long, and may call Execute on the same aggregate.
const longTurn = 500 * time.Millisecond

// take waits for the turn on an aggregate, but not longer than most. So calls that arrive faster
// than they can run do not wait forever, but fail after their attempts. The caller must call end.
func (t *turns) take(ctx context.Context, id aggregate.ID, most time.Duration) (end func()) {
	q := t.join(id)
	if q.wait(ctx, most) {
		return func() {
			q.free <- struct{}{}
			t.leave(id, q)
		}
	}
	return func() { t.leave(id, q) }
}

func (t *turns) join(id aggregate.ID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	q, there := t.of[id]
	if !there {
		if t.of == nil {
			t.of = map[aggregate.ID]*turn{}
		}
		q = &turn{free: make(chan struct{}, 1)}
		q.free <- struct{}{}
		t.of[id] = q
	}
	q.calls++
	return q
}

func (t *turns) leave(id aggregate.ID, q *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.calls--; q.calls == 0 {
		delete(t.of, id)
	}
}

// wait reports whether the caller has the turn.
func (q *turn) wait(ctx context.Context, most time.Duration) bool {
	end := time.Now().Add(most)
	for left := longTurn; ; left = min(longTurn, time.Until(time.Unix(0, q.begun.Load()).Add(longTurn))) {
		if left = min(left, time.Until(end)); left <= 0 {
			return false
		}
		timer := time.NewTimer(left)
		select {
		case <-q.free:
			timer.Stop()
			q.begun.Store(time.Now().UnixNano())
			return true
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}
