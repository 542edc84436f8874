package sim

import (
	"time"

	"github.com/millrace-dev/millrace/test/draw"
)

// quality says how bad a wire is.
type quality struct {
	latency time.Duration // one way, at least
	// Probability that it is up to a hundred times as long.
	spikes float64
	// Probability that a request arrives although its process died.
	arrivesOnExit float64
	network       draw.Network
}

// trip holds the random choices for one request.
type trip struct {
	there, back time.Duration
	arrives     bool // although the process died
}

func (w *wire) draw() trip {
	w.mu.Lock()
	defer w.mu.Unlock()
	return trip{w.way(), w.way(), w.random.Float64() < w.quality.arrivesOnExit}
}

func (w *wire) way() time.Duration {
	q := w.quality
	d := q.latency + draw.UpTo(w.random, q.latency)
	if q.spikes > 0 && w.random.Float64() < q.spikes {
		d += draw.UpTo(w.random, 100*q.latency)
	}
	return d
}
