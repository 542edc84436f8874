package subscriber

import (
	"context"
	"sync"
	"time"
)

// budget bounds what is read ahead of the handlers, for all shards of a subscription; one page of each may exceed it.
type budget struct {
	size, lanes int

	mu   sync.Mutex
	used int
	news chan struct{} // closed when there may be room again; nil while nobody waits
}

func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.used
	b.used -= n
	for _, bound := range []int{b.size, b.size / 2} {
		if before >= bound && b.used < bound {
			b.tell()
		}
	}
}

// changed has those who wait look again whether lanes are free.
func (b *budget) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell()
}

func (b *budget) tell() {
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

// share is how much one stream may hold, beside a single event of any size. While half is free a stream alone may hold a good deal. Then it is so
// little that handlers which hang in all lanes, with all that their streams hold, leave a part to the rest. Less than some events would
// make reading them dear.
func (b *budget) share() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	least := max(minShare, b.size/(4*b.lanes))
	if b.used < b.size/2 {
		return max(least, (b.size-b.used)/8)
	}
	return least
}

const minShare = 16 << 10

// reserve takes n once more may be read, or gives the context's error. Where half of the budget is used it lets the handlers come after: to read on
// would not bring them anything sooner while all lanes are busy, and the more is free, the more does a stream with many events keep of them. While
// lanes are free it does so for a moment only, as they may be free because the rest hangs.
func (b *budget) reserve(ctx context.Context, n int, busy func() bool) error {
	patience := time.NewTimer(lull)
	defer patience.Stop()
	waited := false
	for {
		b.mu.Lock()
		if err := ctx.Err(); err != nil {
			b.mu.Unlock()
			return err
		}
		if b.used < b.size/2 || b.used < b.size && waited && !busy() {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		if b.news == nil {
			b.news = make(chan struct{})
		}
		news := b.news
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		case <-patience.C:
			waited = true
		}
	}
}

const lull = 100 * time.Millisecond
