package subscriber

import (
	"context"
	"sync"
)

// budget bounds what is read ahead of the handlers. Readers wait while it is used
// up; one page may exceed it.
type budget struct {
	mu    sync.Mutex
	free  int
	freed chan struct{} // closed when something is free again; nil while nobody waits
}

func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free -= n
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	if b.free > 0 && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// wait returns once something is free, or with the context's error.
func (b *budget) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		if b.free > 0 {
			b.mu.Unlock()
			return ctx.Err()
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}
