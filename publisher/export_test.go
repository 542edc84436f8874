package publisher

import (
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// ResolveFor sets how long a commit whose reply was lost is looked for.
func (p *Publisher) ResolveFor(d time.Duration) { p.resolveFor = d }

// Waiting is how many batches wait for an aggregate's next commit.
func (p *Publisher) Waiting(id aggregate.ID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := 0
	if s, ok := p.streams.byID[id]; ok {
		for _, b := range s.queue {
			if !b.inFlight {
				waiting++
			}
		}
	}
	return waiting
}

// Abandoned reports whether nobody waits any more for a batch of an aggregate that is in flight.
func (p *Publisher) Abandoned(id aggregate.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.streams.byID[id]
	return ok && slices.ContainsFunc(s.queue, func(b *batch) bool { return b.abandoned })
}

// Remembered is how many aggregates the Publisher knows.
func (p *Publisher) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams.byID)
}
