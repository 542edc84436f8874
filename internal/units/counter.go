package units

import (
	"context"
	"errors"
	"sync"
)

// Counter counts requests and their capacity units. It is safe for concurrent use.
type Counter struct {
	outer *Counter // the counter of the parent context; nil if there is none

	mu          sync.Mutex
	limit       float64 // in read units; 0 for no limit
	read, write float64
	requests    int
}

// key is the context key of a Counter.
type key struct{}

// Count returns a context with a new counter of the requests that are made with it. A counter of
// ctx counts them too.
func Count(ctx context.Context) (context.Context, *Counter) {
	c := &Counter{outer: counterOf(ctx)}
	return context.WithValue(ctx, key{}, c), c
}

// ErrLimit reports that the limit of [Counter.Limit] is reached.
var ErrLimit = errors.New("the limit of read units is reached")

// Limit sets the number of read units after which requests fail with [ErrLimit]. 0 means no limit.
func (c *Counter) Limit(read float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = read
}

// isSpent reports whether the limit of the counter, or of an outer one, is reached.
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

// Totals returns the read units, the write units and the number of requests so far.
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
