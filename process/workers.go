package process

import (
	"context"
	"sync"
	"time"
)

// atOnce limits the concurrent work of a pool. Work that takes longer than slotTimeout frees its
// slot, so hanging work delays the rest by that time at most.
const (
	atOnce      = 8
	slotTimeout = time.Second
)

// workerPool runs up to atOnce functions at a time.
type workerPool struct {
	slots   chan struct{}
	running sync.WaitGroup
}

func newWorkerPool() *workerPool { return &workerPool{slots: make(chan struct{}, atOnce)} }

// do runs a function in a goroutine when a slot is free.
func (p *workerPool) do(ctx context.Context, work func()) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.slots <- struct{}{}:
	}
	leave := sync.OnceFunc(func() { <-p.slots })
	late := time.AfterFunc(slotTimeout, leave)
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		defer leave()
		defer late.Stop()
		work()
	}()
	return nil
}

func (p *workerPool) wait() { p.running.Wait() }
