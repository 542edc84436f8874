package subscriber

import (
	"context"
	"sync"
)

// lock is a mutex that can be waited for as long as a context lasts, since handlers hold it in
// transactions that may hang. The zero value is free.
type lock struct {
	made sync.Once
	slot chan struct{} // holds one while it is somebody's
}

func (l *lock) own() chan struct{} {
	l.made.Do(func() { l.slot = make(chan struct{}, 1) })
	return l.slot
}

// Lock waits for the lock. It returns the cause of the context's end where that comes first, and
// then also if the lock is free: whoever has no time left is to begin nothing.
func (l *lock) Lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.own() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *lock) TryLock() bool {
	select {
	case l.own() <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *lock) Unlock() { <-l.slot }
