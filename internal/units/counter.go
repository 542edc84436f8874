package units

import (
	"context"
	"errors"
	"sync"
)

// Counter counts requests. It is safe for concurrent use.
type Counter struct {
	outer *Counter // of the context from which its own was derived, nil for none

	mu          sync.Mutex
	limit       float64 // of read units; 0 for none
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

// ErrLimit is the error of requests beyond [Counter.Limit].
var ErrLimit = errors.New("the limit of read units is reached")

// Limit has requests fail with [ErrLimit] once so many read units are consumed. 0 is no limit.
func (c *Counter) Limit(read float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = read
}

// isSpent reports that the limit of the counter, or of an outer one, is reached.
func (c *Counter) isSpent() bool {
	for ; c != nil; c = c.outer {
		c.mu.Lock()
		spent := c.limit > 0 && c.read >= c.limit
		c.mu.Unlock()
		if spent {
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
