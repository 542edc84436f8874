package dynamotest

import (
	"slices"
	"sync"
)

// Record records all calls from now on.
func (f *injector) Record() *Recording {
	r := &Recording{}
	r.stop = f.Observe(func(c Call) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, c)
	})
	return r
}

// Recording holds the calls since [DB.Record]. It is safe for concurrent use.
type Recording struct {
	stop  func()
	mu    sync.Mutex
	calls []Call
}

// Stop ends the recording. The recorded calls stay.
func (r *Recording) Stop() { r.stop() }

// Reset removes the calls recorded so far.
func (r *Recording) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Calls returns the calls of some operations, or all calls if none is named, in the order of their
// replies. It panics if an operation does not exist.
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

// Counts returns the number of calls of each operation that was called.
func (r *Recording) Counts() map[string]int {
	counts := map[string]int{}
	for _, c := range r.Calls() {
		counts[c.Operation]++
	}
	return counts
}

// Units returns the capacity units that some operations consumed, or all if none is named.
func (r *Recording) Units(operations ...string) (read, write float64) {
	for _, c := range r.Calls(operations...) {
		read += c.ReadUnits
		write += c.WriteUnits
	}
	return read, write
}
