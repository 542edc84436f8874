package dedup

import (
	"context"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
)

// turns makes the messages of an aggregate wait for each other. The Router runs handlers in
// parallel if a transport delivers the next message, or a duplicate, before an ack.
type turns struct {
	mu   sync.Mutex
	byID map[aggregate.ID]*turn // aggregates with a message that is handled or waits
}

type turn struct {
	taken chan struct{} // a lock: holds an element while a message is handled
	users int           // messages that are handled or wait
}

// take waits for the turn of a message. done ends it.
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
