package dynamotest

import (
	"slices"
	"sync"
)

// Record keeps the calls from now on.
func (f *injector) Record() *Recording {
	r := &Recording{}
	r.stop = f.Observe(func(c Call) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, c)
	})
	return r
}

// Recording is what [DB.Record] keeps. It is safe for concurrent use.
type Recording struct {
	stop  func()
	mu    sync.Mutex
	calls []Call
}

// Stop ends the recording.
func (r *Recording) Stop() { r.stop() }

// Reset forgets the calls so far.
func (r *Recording) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Calls are the calls of some operations, or all if none is named, in the order of their replies.
// An operation that does not exist panics.
func (r *Recording) Calls(operations ...string) []Call {
	for _, name := range operations {
		checkOperation(name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, c := range r.calls {
		if len(operations) == 0 || slices.Contains(operations, c.Operation) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Counts returns how many calls there were of each operation that was called.
func (r *Recording) Counts() map[string]int {
	counts := map[string]int{}
	for _, c := range r.Calls() {
		counts[c.Operation]++
	}
	return counts
}

// Units are the capacity units that some operations consumed, or all if none is named.
func (r *Recording) Units(operations ...string) (read, write float64) {
	for _, c := range r.Calls(operations...) {
		read += c.ReadUnits
		write += c.WriteUnits
	}
	return read, write
}
