package engine

import (
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
)

// Watch calls notify after every commit to an aggregate of the type through this Journal, with
// the new version. An empty type stands for all types. Commits of other processes are not reported,
// and several commits may be reported out of order.
//
// notify runs in the committer's goroutine. It must return immediately, and must neither append
// nor call stop. After stop has returned, notify is not called any more.
func (j *Engine) Watch(aggregateType string, notify func(id aggregate.ID, version uint64)) (stop func()) {
	return j.watchers.add(aggregateType, notify)
}

// Notify reports a commit to the callers of Watch.
func (j *Engine) Notify(id aggregate.ID, version uint64) { j.watchers.notify(id, version) }

type watchers struct {
	mu     sync.RWMutex
	next   int
	byType map[string]map[int]func(aggregate.ID, uint64)
}

func (w *watchers) add(aggregateType string, notify func(aggregate.ID, uint64)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byType == nil {
		w.byType = map[string]map[int]func(aggregate.ID, uint64){}
	}
	if w.byType[aggregateType] == nil {
		w.byType[aggregateType] = map[int]func(aggregate.ID, uint64){}
	}
	key := w.next
	w.next++
	w.byType[aggregateType][key] = notify
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byType[aggregateType], key)
		if len(w.byType[aggregateType]) == 0 {
			delete(w.byType, aggregateType)
		}
	}
}

func (w *watchers) notify(id aggregate.ID, version uint64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, of := range []string{id.Type, ""} {
		for _, notify := range w.byType[of] {
			notify(id, version)
		}
	}
}
