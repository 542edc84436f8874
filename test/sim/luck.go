package sim

import (
	"math/rand/v2"
	"time"
)

// quality is how bad a wire is.
type quality struct {
	latency       time.Duration // one way, at least
	spikes        float64       // the chance that it is up to a hundred times that
	cut           float64       // the chance that a request does not arrive
	lost          float64       // the chance that a reply does not
	late          float64       // the chance that a request arrives after it was given up
	lateBy        time.Duration // at most
	arrivesOnExit float64       // the chance that a request on its way arrives although its process died
}

// luck is what is drawn for one request.
type luck struct {
	there, back        time.Duration
	cut, lost, arrives bool
	late               time.Duration
}

func (w *wire) draw() (l luck) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.quality
	l.there, l.back = w.way(), w.way()
	switch u := w.random.Float64(); {
	case u < q.cut:
		l.cut = true
	case u < q.cut+q.lost:
		l.lost = true
	case u < q.cut+q.lost+q.late:
		l.late = 1 + rand64(w.random, q.lateBy)
	}
	l.arrives = w.random.Float64() < q.arrivesOnExit
	return l
}

func (w *wire) way() time.Duration {
	q := w.quality
	d := q.latency + rand64(w.random, q.latency)
	if q.spikes > 0 && w.random.Float64() < q.spikes {
		d += rand64(w.random, 100*q.latency)
	}
	return d
}

// rand64 draws from 0 to d.
func rand64(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(d) + 1))
}
