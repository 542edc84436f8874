package subscriber

import (
	"context"
	"sync"
	"time"
)

// budget bounds what is read ahead of the handlers, for all shards of a subscription. A page takes
// its place before it is read; it may turn out larger, and what exceeds the budget by a quarter is
// dropped.
type budget struct {
	size, lanes int

	mu    sync.Mutex
	used  int
	freed chan struct{} // closed when there is room again; nil while nobody waits
}

func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
}

func (b *budget) isFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used >= b.size
}

// tryTake takes n where that does not exceed the budget by far.
func (b *budget) tryTake(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.size+b.size/4 {
		return false
	}
	b.used += n
	return true
}

func (b *budget) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.used < b.size && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// reserve takes n once something is free, or returns the context's error.
//
// A stream may hold all of the budget, so that a large aggregate is read once, and readers wait for
// the handlers. But lanes may be free while they wait, because the few streams that hold the budget
// come one after the other, or hang. Then trim is to free some of it.
func (b *budget) reserve(ctx context.Context, n int, busy func() bool, trim func()) error {
	patience := time.NewTimer(lull)
	defer patience.Stop()
	for {
		b.mu.Lock()
		if err := ctx.Err(); err != nil {
			b.mu.Unlock()
			return err
		}
		if b.used < b.size {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		changed := b.freed
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		case <-patience.C:
			if !busy() {
				trim()
			}
			patience.Reset(lull)
		}
	}
}

const lull = 500 * time.Millisecond

// page is what to reserve for a page of the tail, of which DynamoDB reads 1 MB at most. A small
// budget is not for one reader alone.
func (b *budget) page() int { return min(1<<20, b.size/8) }

// share is what one stream may hold where there is no room, beside a single event of any size: so
// little that handlers which hang in all lanes but one leave a half to the rest. Less than some
// events would make reading them dear.
func (b *budget) share() int { return max(minShare, b.size/(2*b.lanes)) }

const minShare = 16 << 10
