package groups

import (
	"errors"
	"sync"
)

// readers is the number of reads that are made in parallel.
const readers = 16

// inParallel calls do for 0 to n-1, a few calls at a time, and returns their errors. It begins no
// call after an error.
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
