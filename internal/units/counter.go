package units

import (
	"context"
	"errors"
	"sync"
)

// Counter counts requests. It is safe for concurrent use.
type Counter struct {
	outer *Counter // of the context from which its own was derived, nil for none

	limit float64 // of read units; 0 for none

	mu          sync.Mutex
	read, write float64
	requests    int
}

// key is that of a context's Counter.
type key struct{}

// Count returns a context whose requests the counter counts. A counter of ctx counts them too.
func Count(ctx context.Context) (context.Context, *Counter) {
	c := &Counter{outer: counterOf(ctx)}
	return context.WithValue(ctx, key{}, c), c
}

// ErrLimit is the error of requests that [Limit] refuses.
var ErrLimit = errors.New("the read units of the context are used up")

// Limit returns a context whose requests fail with [ErrLimit] once they have consumed so many read
// units. The counter of ctx, if there is one, counts them too.
func Limit(ctx context.Context, read float64) context.Context {
	return context.WithValue(ctx, key{}, &Counter{outer: counterOf(ctx), limit: read})
}

// isSpent reports that a limit is reached.
func (c *Counter) isSpent() bool {
	for ; c != nil; c = c.outer {
		if read, _, _ := c.Totals(); c.limit > 0 && read >= c.limit {
			return true
		}
	}
	return false
}

func counterOf(ctx context.Context) *Counter {
	c, _ := ctx.Value(key{}).(*Counter)
	return c
}

// Totals returns what was counted so far.
func (c *Counter) Totals() (read, write float64, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.write, c.requests
}

func (c *Counter) add(read, write float64) {
	for ; c != nil; c = c.outer {
		c.mu.Lock()
		c.read += read
		c.write += write
		c.requests++
		c.mu.Unlock()
	}
}
