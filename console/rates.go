package console

import (
	"sync"
	"time"
)

// writing holds the times at which the newest events of a topic were written, by shard.
type writing struct {
	from, to time.Time // the period for which it has all events
	times    map[int][]time.Time
}

// allShards stands for the sum of all shards.
const allShards = -1

// since returns the number of events of a shard that were written at a time or later.
func (w *writing) since(shard int, t time.Time) (n int) {
	for number, times := range w.times {
		if shard != allShards && shard != number {
			continue
		}
		for _, at := range times {
			if !at.Before(t) {
				n++
			}
		}
	}
	return n
}

// rate returns the number of events of a shard that were written per second.
func (w *writing) rate(shard int) float64 {
	return float64(w.since(shard, w.from)) / max(w.to.Sub(w.from), time.Second).Seconds()
}

// rates stores lags of groups, to compute how many events they handle: the number of written events
// minus the growth of the lag.
type rates struct {
	mu   sync.Mutex
	last map[rateKey]lagAt
}

type rateKey struct {
	group, topic string
	shard        int // or allShards
}

type lagAt struct {
	at     time.Time
	events uint64
	known  bool // false if there are more events than were counted
}

// sampleAge is the maximum age of a lag that is compared with a later one.
const sampleAge = 10 * time.Minute

// handled returns the number of events that a group handles per second, or nil if it is not known.
// If the group has a lag, it is known from the second read on.
func (r *rates) handled(key rateKey, now lagAt, w *writing) *float64 {
	before, found := r.remember(key, now)
	if w == nil || !now.known {
		return nil
	}
	perSecond := w.rate(key.shard)
	if now.events == 0 && (!found || before.events == 0) {
		return &perSecond // the group handles all events
	}
	elapsed := now.at.Sub(before.at)
	if !found || !before.known || elapsed < time.Second || elapsed > sampleAge {
		return nil
	}
	written := perSecond * elapsed.Seconds()
	if !before.at.Before(w.from) {
		written = float64(w.since(key.shard, before.at))
	}
	perSecond = max(0, (written+float64(before.events)-float64(now.events))/elapsed.Seconds())
	return &perSecond
}

// remember stores a lag, to compare it with later ones, and returns the lag before.
func (r *rates) remember(key rateKey, now lagAt) (before lagAt, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, found = r.last[key]
	if r.last == nil {
		r.last = map[rateKey]lagAt{}
	}
	if elapsed := now.at.Sub(before.at); !found || elapsed >= time.Second || elapsed < 0 {
		r.last[key] = now
	}
	for old, sample := range r.last { // forgets groups that were removed
		if now.at.Sub(sample.at) > sampleAge {
			delete(r.last, old)
		}
	}
	return before, found
}
