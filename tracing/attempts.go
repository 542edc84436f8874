package tracing

import (
	"context"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber"
)

// maxAttempts bounds the aggregates whose attempts are known.
const maxAttempts = 10_000

// attempts counts the deliveries of events that come again. An aggregate has one event out at a time, so one count for each
// handler and aggregate is enough.
type attempts struct {
	mu    sync.Mutex
	known *lru.LRU[handled, attempt]
}

type handled struct {
	handler   string
	aggregate aggregate.ID
}

type attempt struct {
	number uint64 // of the event
	count  int
}

func newAttempts() *attempts {
	known, err := lru.NewLRU[handled, attempt](maxAttempts, nil)
	if err != nil {
		panic(err) // only a size that is not positive is an error
	}
	return &attempts{known: known}
}

func keyOf(ctx context.Context) handled {
	id, _, _ := subscriber.AggregateFromContext(ctx)
	return handled{message.HandlerNameFromCtx(ctx), id}
}

// count gives which attempt at an event begins.
func (a *attempts) count(of handled, number uint64) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, _ := a.known.Get(of)
	if last.number != number {
		last = attempt{number: number}
	}
	last.count++
	a.known.Add(of, last)
	return last.count
}

// forget makes room once an event was handled.
func (a *attempts) forget(of handled) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.Remove(of)
}
