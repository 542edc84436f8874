package live

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

const (
	// lateShare divides WaitTimeout for an aggregate whose last wait failed.
	lateShare = 20
	// maxLate limits the number of aggregates that are remembered as late.
	maxLate = 10_000
)

// late remembers the aggregates whose last wait failed, so that an aggregate that stays late, such
// as a parked one, takes the whole WaitTimeout only once. The zero value has none.
type late struct {
	mu  sync.Mutex
	ids map[aggregate.ID]struct{}
}

// timeout returns the time to wait for an aggregate.
func (l *late) timeout(id aggregate.ID, whole time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, isLate := l.ids[id]; isLate {
		return whole / lateShare
	}
	return whole
}

func (l *late) note(id aggregate.ID, isLate bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isLate {
		delete(l.ids, id)
		return
	}
	if l.ids == nil || len(l.ids) >= maxLate {
		l.ids = map[aggregate.ID]struct{}{} // forgetting an aggregate costs one longer wait
	}
	l.ids[id] = struct{}{}
}
