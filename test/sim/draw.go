package sim

import (
	"time"

	"github.com/millrace-dev/millrace/test/draw"
)

// quality is how bad a wire is.
type quality struct {
	latency       time.Duration // one way, at least
	spikes        float64       // the chance that it is up to a hundred times that
	arrivesOnExit float64       // the chance that a request on its way arrives although its process died
	network       draw.Network
}

// trip is what is drawn for one request.
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
