package publisher

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// ResolveFor sets the time for which the publisher reads the table after a lost reply.
func (p *Publisher) ResolveFor(d time.Duration) { p.resolveFor = d }

// Queued returns the number of batches of an aggregate that are in a commit or wait for the next.
func (p *Publisher) Queued(id aggregate.ID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.streams.byID[id]; ok {
		return len(s.queue)
	}
	return 0
}

// Remembered returns the number of aggregates in the Publisher's cache.
func (p *Publisher) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams.byID)
}

// Watch makes the Publisher call each for every commit that it sends to the journal.
func (p *Publisher) Watch(each func(storage.Commit)) {
	write := p.append
	p.append = func(ctx context.Context, c storage.Commit) (storage.Receipt, error) {
		each(c)
		return write(ctx, c)
	}
}
