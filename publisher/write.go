package publisher

import (
	"slices"
	"sync"
	"sync/atomic"
)

// writeAll appends the batches of one Publish side by side and returns the failures.
func (p *Publisher) writeAll(batches []*batch) []*AppendError {
	// What can be known to fail fails before anything is written.
	for _, b := range batches {
		for _, ctx := range b.contexts {
			if err := ctx.Err(); err != nil {
				return failAll(batches, err)
			}
		}
	}
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

func failAll(batches []*batch, err error) []*AppendError {
	failed := make([]*AppendError, len(batches))
	for i, b := range batches {
		failed[i] = b.failure(err)
	}
	return failed
}

// write appends a batch and waits for it, or for the end of a message's context.
func (p *Publisher) write(b *batch) *AppendError {
	ended, reason, stop := b.watch()
	defer stop()
	select {
	case <-ended:
		return b.failure(reason())
	default:
	}
	p.enqueue(b)
	select {
	case <-b.done:
		if b.err != nil {
			return b.failure(b.err)
		}
		return nil
	case <-ended:
		return p.abandon(b, reason())
	}
}

// abandon gives up waiting for a batch. One that is not in flight is taken out of its queue.
func (p *Publisher) abandon(b *batch, reason error) *AppendError {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case b.finished && b.err == nil:
		return nil
	case b.finished:
		return b.failure(b.err)
	case b.inFlight:
		b.abandoned = true
		return b.failure(&AbandonedError{Err: reason})
	default:
		b.finish(reason)
		p.streams.byID[b.id].clean()
		return b.failure(reason)
	}
}
