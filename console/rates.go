package console

import (
	"sync"
	"time"
)

// rates remembers lags of groups to compute how many events they handle: those that were written
// minus the growth of the lag.
type rates struct {
	mu   sync.Mutex
	last map[rateKey]lagAt
}

type rateKey struct {
	group, topic string
	shard        int // -1: all
}

type lagAt struct {
	at     time.Time
	events uint64
	known  bool // false if there are more events than were counted
}

// sampleAge is how old a lag may be to be compared with a later one.
const sampleAge = 10 * time.Minute

// handled returns how many events a group handles in each second, nil if it is not known. If the
// group has a lag, it is known from the second read on.
func (r *rates) handled(key rateKey, now lagAt, written *float64) *float64 {
	r.mu.Lock()
	before, found := r.last[key]
	if r.last == nil {
		r.last = map[rateKey]lagAt{}
	}
	if elapsed := now.at.Sub(before.at); !found || elapsed >= time.Second || elapsed < 0 {
		r.last[key] = now
	}
	for old, sample := range r.last { // so that groups that were removed are forgotten
		if now.at.Sub(sample.at) > sampleAge {
			delete(r.last, old)
		}
	}
	r.mu.Unlock()
	if written == nil || !now.known {
		return nil
	}
	if now.events == 0 && (!found || before.events == 0) {
		return written
	}
	elapsed := now.at.Sub(before.at)
	if !found || !before.known || elapsed < time.Second || elapsed > sampleAge {
		return nil
	}
	perSecond := max(0, *written+(float64(before.events)-float64(now.events))/elapsed.Seconds())
	return &perSecond
}
