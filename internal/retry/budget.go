package retry

import (
	"context"
	"sync"
	"time"
)

// Budget is the time for which the requests of one call may be repeated, all together. The time
// during which at least one of them is being repeated counts, and no other: the call may do other
// work in between. It is safe for concurrent use. All methods work on nil, which has no limit.
type Budget struct {
	mu     sync.Mutex
	left   time.Duration
	active int
	since  time.Time // since when some request is being repeated
}

type budgetKey struct{}

// WithBudget returns a context whose requests share a budget.
func WithBudget(ctx context.Context, of time.Duration) context.Context {
	return context.WithValue(ctx, budgetKey{}, &Budget{left: of})
}

// WithoutBudget returns a context whose requests share no budget.
func WithoutBudget(ctx context.Context) context.Context {
	if BudgetOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, (*Budget)(nil))
}

// BudgetOf returns the budget that the requests of a context share, and nil if there is none.
func BudgetOf(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// Begin records that a request that was sent at a time is being repeated, until end is called.
func (b *Budget) Begin(sent time.Time) (end func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active == 0 {
		b.since = sent
	}
	b.active++
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.active--; b.active == 0 {
			b.left -= time.Since(b.since)
		}
	})
}

// Spend takes a time from what is left.
func (b *Budget) Spend(d time.Duration) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= d
}

// Left returns the smaller of most and of what is left.
func (b *Budget) Left(most time.Duration) time.Duration {
	if b == nil {
		return most
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left
	if b.active > 0 {
		left -= time.Since(b.since)
	}
	return min(left, most)
}
