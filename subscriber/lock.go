package subscriber

import (
	"context"
	"sync"
)

// lock is a mutex whose Lock method has a context, because handlers hold it in transactions that
// may hang. The zero value is unlocked.
type lock struct {
	made sync.Once
	slot chan struct{} // contains an element while the lock is held
}

func (l *lock) own() chan struct{} {
	l.made.Do(func() { l.slot = make(chan struct{}, 1) })
	return l.slot
}

// Lock waits for the lock. If the context ends, it returns the cause of that, even if the lock is
// free: a caller that has no time left must not begin.
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
