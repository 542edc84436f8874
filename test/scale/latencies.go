package scale

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Latencies is a distribution of times, in milliseconds.
type Latencies struct {
	mu     sync.Mutex
	counts map[int]int
	n      int
}

func (l *Latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[int]int{}
	}
	l.counts[int(d.Milliseconds())]++
	l.n++
}

// merge adds another distribution.
func (l *Latencies) merge(other *Latencies) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[int]int{}
	}
	for ms, n := range other.counts {
		l.counts[ms] += n
	}
	l.n += other.n
}

// Count returns the number of times.
func (l *Latencies) Count() int { return l.n }

// Percentile returns the time that the given percentage of all times does not exceed.
func (l *Latencies) Percentile(percent float64) time.Duration {
	left := int(float64(l.n) * percent / 100)
	for _, ms := range slices.Sorted(maps.Keys(l.counts)) {
		if left -= l.counts[ms]; left <= 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 0
}
