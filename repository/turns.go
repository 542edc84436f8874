package repository

import (
	"context"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/retry"
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

	mu    sync.Mutex
	last  uint64        // the number of the last call that got the turn
	begun time.Time     // when it got it
	long  time.Duration // how long it may have it
}

// A call that has the turn for longTurn loses it to the next one. A decision may take long, and may
// call Execute on the same aggregate. Where calls take longer because the database is slow, the
// limit is twice the time of the last call, up to longestTurn: calls that lose their turns for that
// reason would have conflicts with each other, and take even longer.
const (
	longTurn    = 500 * time.Millisecond
	longestTurn = 5 * time.Second
)

// take waits for the turn on an aggregate, until ctx ends. The caller must call end.
func (t *turns) take(ctx context.Context, id aggregate.ID) (end func()) {
	q := t.join(id)
	number, begun := q.wait(ctx), time.Now()
	return func() {
		q.pass(number, time.Since(begun))
		t.leave(id, q)
	}
}

func (t *turns) join(id aggregate.ID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	q, there := t.of[id]
	if !there {
		if t.of == nil {
			t.of = map[aggregate.ID]*turn{}
		}
		q = &turn{free: make(chan struct{}, 1), begun: time.Now(), long: longTurn}
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

// wait returns the number of the call when it has the turn, and 0 if ctx ends before.
func (q *turn) wait(ctx context.Context) (number uint64) {
	for number == 0 {
		timer := time.NewTimer(max(q.left(), retry.Soon))
		select {
		case <-q.free:
			number = q.begin()
		case <-ctx.Done():
			timer.Stop()
			return 0
		case <-timer.C:
			number = q.takeOver()
		}
		timer.Stop()
	}
	return number
}

// left returns how long the last call may still have the turn.
func (q *turn) left() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Until(q.begun.Add(q.long))
}

func (q *turn) begin() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next()
}

// next passes the turn to the next call. The caller holds mu.
func (q *turn) next() uint64 {
	q.last++
	q.begun = time.Now()
	return q.last
}

// takeOver is begin for a call that does not wait any longer for the last one. It returns 0 if
// another call was faster.
func (q *turn) takeOver() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Until(q.begun.Add(q.long)) > 0 {
		return 0
	}
	select {
	case <-q.free: // meanwhile
	default:
	}
	return q.next()
}

// pass ends a call that took some time. It frees the turn, unless the call has lost it.
func (q *turn) pass(number uint64, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if number == 0 {
		return
	}
	q.long = min(max(longTurn, 2*took), longestTurn)
	if number == q.last {
		select {
		case q.free <- struct{}{}:
		default:
		}
	}
}
