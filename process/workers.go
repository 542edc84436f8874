package process

import (
	"context"
	"sync"
	"time"
)

// atOnce bounds the work of a pool. Work that takes longer than slotTimeout no longer counts, so
// work that hangs delays the rest by that time at most.
const (
	atOnce      = 8
	slotTimeout = time.Second
)

// workerPool does several things at a time.
type workerPool struct {
	slots chan struct{}
	work  sync.WaitGroup
}

func newWorkerPool() *workerPool { return &workerPool{slots: make(chan struct{}, atOnce)} }

// do begins something when there is room for it.
func (p *workerPool) do(ctx context.Context, what func()) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.slots <- struct{}{}:
	}
	leave := sync.OnceFunc(func() { <-p.slots })
	late := time.AfterFunc(slotTimeout, leave)
	p.work.Add(1)
	go func() {
		defer p.work.Done()
		defer leave()
		defer late.Stop()
		what()
	}()
	return nil
}

func (p *workerPool) wait() { p.work.Wait() }
