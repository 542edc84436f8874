package publisher

import (
	"slices"
	"sync"
	"sync/atomic"
)

// writeAll appends the batches of one Publish in parallel, and returns the failures.
func (p *Publisher) writeAll(batches []*batch) []*AppendError {
	failed := make([]*AppendError, len(batches))
	if len(batches) == 1 {
		failed[0] = p.write(batches[0])
	} else {
		var next atomic.Int64
		var writers sync.WaitGroup
		for range min(p.config.Concurrency, len(batches)) {
			writers.Add(1)
			go func() {
				defer writers.Done()
				for i := next.Add(1) - 1; i < int64(len(batches)); i = next.Add(1) - 1 {
					failed[i] = p.write(batches[i])
				}
			}()
		}
		writers.Wait()
	}
	return slices.DeleteFunc(failed, func(e *AppendError) bool { return e == nil })
}

// write appends a batch and waits for it.
func (p *Publisher) write(b *batch) *AppendError {
	p.enqueue(b)
	<-b.done
	if b.err != nil {
		return b.failure(b.err)
	}
	return nil
}
