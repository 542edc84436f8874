package repository

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/millrace-dev/millrace/aggregate"
)

const (
	// mostRecent is the number of aggregates in recent.
	mostRecent = 1000
	// distrust is how long an aggregate is read with strong consistency after an eventually
	// consistent read of it was old. Such a read costs a conflict, and its saving is half of a
	// load. So it pays while fewer than about 29 % of the commits fail for that reason, or 7 % of
	// large ones.
	distrust = 5 * time.Second
)

// recent holds the aggregates that this repository has written lately, or of which a read was old.
type recent struct {
	mu      sync.Mutex // held while an entry is read and changed
	entries *lru.Cache[aggregate.ID, recentAggregate]
}

type recentAggregate struct {
	version uint64    // the latest that was written
	until   time.Time // for how long eventually consistent reads are not used
}

func newRecent() *recent {
	// The only error is about the size.
	entries, _ := lru.New[aggregate.ID, recentAggregate](mostRecent)
	return &recent{entries: entries}
}

func (r *recent) version(id aggregate.ID) uint64 {
	a, _ := r.entries.Get(id)
	return a.version
}

func (r *recent) isDistrusted(id aggregate.ID, now time.Time) bool {
	a, _ := r.entries.Get(id)
	return now.Before(a.until)
}

func (r *recent) written(id aggregate.ID, version uint64) {
	r.change(id, func(a *recentAggregate) { a.version = max(a.version, version) })
}

func (r *recent) distrust(id aggregate.ID, now time.Time) {
	r.change(id, func(a *recentAggregate) { a.until = now.Add(distrust) })
}

func (r *recent) change(id aggregate.ID, change func(*recentAggregate)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, _ := r.entries.Get(id)
	change(&a)
	r.entries.Add(id, a)
}
