package groups

import (
	"errors"
	"sync"
)

// readers is how many reads are made side by side.
const readers = 16

// inParallel does n things, a few of them side by side, and returns their errors. After one nothing
// more is begun.
func inParallel(few, n int, do func(i int) error) error {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		next    int
		errs    []error
	)
	claim := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= n && len(errs) == 0
	}
	for range min(n, few) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i, more := claim(); more; i, more = claim() {
				if err := do(i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		}()
	}
	workers.Wait()
	return errors.Join(errs...)
}
