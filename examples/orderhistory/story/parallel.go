package story

import (
	"context"
	"sync"
)

// inParallel calls a function for each item, with a number of workers, and returns the first error.
func inParallel[T any](ctx context.Context, workers int, items []T, do func(context.Context, T) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	queue := make(chan T)
	var working sync.WaitGroup
	for range workers {
		working.Add(1)
		go func() {
			defer working.Done()
			for item := range queue {
				if err := do(ctx, item); err != nil {
					fail(err)
					return
				}
			}
		}()
	}
feed:
	for _, item := range items {
		select {
		case queue <- item:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	working.Wait()
	return context.Cause(ctx)
}
