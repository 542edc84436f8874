package sim

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/test/draw"
)

// clock is the clock of a process. It always has a small error, and sometimes a large one.
type clock struct {
	skew time.Duration
	off  atomic.Int64
}

func (c *clock) now() time.Time { return time.Now().Add(c.skew + time.Duration(c.off.Load())) }

// wander sets the clock about a day ahead or behind for a while, repeatedly until ctx ends.
func (c *clock) wander(ctx context.Context, w *world, who string, r *rand.Rand) {
	for ctx.Err() == nil {
		pauseFor(ctx, draw.UpTo(r, 15*time.Second))
		off := between(r, 20*time.Hour, 30*time.Hour)
		if r.IntN(2) == 0 {
			off = -off
		}
		c.off.Store(int64(off))
		w.oracle.note("clock off", who)
		pauseFor(ctx, between(r, time.Second, 15*time.Second))
		c.off.Store(0)
		w.oracle.note("clock right", who)
	}
}
