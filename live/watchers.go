package live

import "sync"

// watchers holds the channels of watchers by key. The zero value is empty.
type watchers struct {
	mu     sync.Mutex
	byKey  map[string]map[chan struct{}]struct{}
	closed bool
}

func (w *watchers) add(key string) (changed <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(watcher)
		return watcher, func() {}
	}
	if w.byKey == nil {
		w.byKey = map[string]map[chan struct{}]struct{}{}
	}
	if w.byKey[key] == nil {
		w.byKey[key] = map[chan struct{}]struct{}{}
	}
	w.byKey[key][watcher] = struct{}{}
	return watcher, func() { w.remove(key, watcher) }
}

func (w *watchers) remove(key string, watcher chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey[key], watcher)
	if len(w.byKey[key]) == 0 {
		delete(w.byKey, key)
	}
}

func (w *watchers) has(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byKey[key]) > 0
}

func (w *watchers) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byKey) > 0
}

func (w *watchers) notify(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for watcher := range w.byKey[key] {
		signal(watcher)
	}
}

func (w *watchers) notifyAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, watching := range w.byKey {
		for watcher := range watching {
			signal(watcher)
		}
	}
}

func signal(watcher chan struct{}) {
	select {
	case watcher <- struct{}{}:
	default: // the last signal has not been received yet
	}
}

func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, watching := range w.byKey {
		for watcher := range watching {
			close(watcher)
		}
	}
	w.byKey, w.closed = nil, true
}
