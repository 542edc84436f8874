package sequence

import (
	"context"
	"sync"
	"time"
)

// Budget limits the bytes of events that are read ahead of the handlers, for all shards of a
// subscription. It does not count the events that workers have, one for each lane. The size of a
// page is reserved before it is read. A page may be larger than that. Events that exceed the budget
// by more than a quarter are dropped.
type Budget struct {
	size, lanes int

	mu    sync.Mutex
	used  int
	freed chan struct{} // closed when there is room again; nil while no reader waits
}

// NewBudget returns a budget of some bytes for a number of lanes.
func NewBudget(size, lanes int) *Budget { return &Budget{size: size, lanes: lanes} }

func (b *Budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
}

func (b *Budget) isFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used >= b.size
}

// tryTake takes n unless that exceeds the budget by more than a quarter.
func (b *Budget) tryTake(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.size+b.size/4 {
		return false
	}
	b.used += n
	return true
}

// Release returns what was reserved or taken.
func (b *Budget) Release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.used < b.size && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// Reserve waits until the budget is not exceeded and takes n, or returns the context's error.
//
// One stream may hold the whole budget, so that a large aggregate is read only once, and readers
// wait for the handlers. But lanes may be idle while they wait: the few streams that hold the
// budget may be served one after the other, or have handlers that hang. Then Reserve calls trim,
// which frees a part of the budget.
func (b *Budget) Reserve(ctx context.Context, n int, busy func() bool, trim func()) error {
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

// Page returns the number of bytes to reserve for a page of the tail. DynamoDB reads at most 1 MB
// for a page. If the budget is small, one reader takes only an eighth of it.
func (b *Budget) Page() int { return min(1<<20, b.size/8) }

// Share returns the number of bytes that one stream may hold when the budget is exceeded. A stream
// may hold one event of any size in addition. The share is so small that handlers that hang in all
// lanes except one leave half of the budget to the other streams. It is at least minShare, because
// it is expensive to read only a few events at a time.
func (b *Budget) Share() int { return max(minShare, b.part()) }

// part is the share without a minimum.
func (b *Budget) part() int { return b.size / (2 * b.lanes) }

const minShare = 16 << 10
