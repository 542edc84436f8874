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

	mu    sync.Mutex
	under map[string]<-chan struct{} // work in progress by its key, closed at its end
}

func newWorkerPool() *workerPool {
	return &workerPool{slots: make(chan struct{}, atOnce), under: map[string]<-chan struct{}{}}
}

// do runs a function in a goroutine, and again while it returns true, each time when a slot is
// free. It returns when the first call has its slot. No work with the key may be in progress.
func (p *workerPool) do(ctx context.Context, key string, work func() (again bool)) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.under[key] = ended
	p.mu.Unlock()
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.under, key)
			close(ended)
		}()
		for again := true; again; {
			again = p.turn(work) && p.enter(ctx) == nil
		}
	}()
	return nil
}

// progress returns a channel that is closed when the work with a key ends, or nil if there is none.
func (p *workerPool) progress(key string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.under[key]
}

// enter waits for a slot.
func (p *workerPool) enter(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.slots <- struct{}{}:
		return nil
	}
}

// turn calls a function in the slot that the caller has entered, and frees the slot.
func (p *workerPool) turn(work func() bool) bool {
	leave := sync.OnceFunc(func() { <-p.slots })
	defer leave()
	late := time.AfterFunc(slotTimeout, leave)
	defer late.Stop()
	return work()
}

func (p *workerPool) wait() { p.running.Wait() }
