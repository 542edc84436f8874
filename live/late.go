package live

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

const (
	// lateShare is the part of WaitTimeout that an aggregate gets whose last wait failed.
	lateShare = 20
	// maxLate bounds the aggregates that are remembered as late.
	maxLate = 10_000
)

// late remembers the aggregates that the read model was too late with, so that each of them takes
// the whole WaitTimeout only once, as those that the group has parked. The zero value has none.
type late struct {
	mu  sync.Mutex
	ids map[aggregate.ID]struct{}
}

// timeout returns how long to wait for an aggregate.
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
		l.ids = map[aggregate.ID]struct{}{} // to forget one costs a longer wait
	}
	l.ids[id] = struct{}{}
}
