package console

import (
	"context"
	"sync"
	"time"
)

// shared holds the last reads of pages, so that the cost does not grow with the number of visitors.
type shared struct {
	mu    sync.Mutex
	reads map[string]*sharedRead
}

type sharedRead struct {
	done   chan struct{}
	result result
	ended  time.Time // zero while it runs
}

// read returns the result for a key if it is younger than age, or loads it. Visitors who request it
// while it is loaded wait for it. A failed result is returned only to the visitors who wait for it.
func (s *shared) read(ctx context.Context, key string, age time.Duration, load func(context.Context) result) result {
	s.mu.Lock()
	found := s.reads[key]
	if found == nil || !found.ended.IsZero() && (found.result.err != nil || time.Since(found.ended) >= age) {
		found = &sharedRead{done: make(chan struct{})}
		s.prune(age)
		s.reads[key] = found
		go s.load(context.WithoutCancel(ctx), found, load) // other visitors wait for it too
	}
	s.mu.Unlock()
	select {
	case <-found.done:
		return found.result
	case <-ctx.Done():
		return result{err: ctx.Err()}
	}
}

func (s *shared) load(ctx context.Context, r *sharedRead, load func(context.Context) result) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r.result = load(ctx)
	s.mu.Lock()
	r.ended = time.Now()
	s.mu.Unlock()
	close(r.done)
}

// prune removes reads that are too old to be shown. The caller holds the lock.
func (s *shared) prune(age time.Duration) {
	if s.reads == nil {
		s.reads = map[string]*sharedRead{}
	}
	for key, r := range s.reads {
		if !r.ended.IsZero() && time.Since(r.ended) >= age {
			delete(s.reads, key)
		}
	}
}

// forget removes all reads, for example after an action, so that the next visitor reads again.
func (s *shared) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.reads)
}
