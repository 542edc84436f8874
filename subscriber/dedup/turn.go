package dedup

import (
	"context"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
)

// turns lets the messages of an aggregate be handled one after the other: the Router handles side
// by side whatever a transport delivers before an ack, duplicates included.
type turns struct {
	mu   sync.Mutex
	byID map[aggregate.ID]*turn // only those that somebody has or waits for
}

type turn struct {
	taken chan struct{} // holds one while it is somebody's
	users int
}

// take waits for the turn. Done gives it to the next.
func (t *turns) take(ctx context.Context, id aggregate.ID) (done func(), err error) {
	t.mu.Lock()
	own := t.byID[id]
	if own == nil {
		own = &turn{taken: make(chan struct{}, 1)}
		t.byID[id] = own
	}
	own.users++
	t.mu.Unlock()

	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.byID, id)
		}
	}
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
