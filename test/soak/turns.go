package soak

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// turns lets one strand run at a time. The seed decides which. The strand with the turn may use all
// fields.
type turns struct {
	random *rand.Rand
	stay   float64 // probability of keeping the turn
	held   int     // strands in the middle of a transaction
	tick   func()  // lets time pass
	ready  []*strand
	has    *strand
	free   atomic.Bool // all strands run at once; read by requests beside the turns too
}

// strand takes turns: a writer, with the goroutines that work for it while it waits.
type strand struct {
	wake chan struct{}
	wire *wire
}

func (t *turns) join() *strand {
	s := &strand{wake: make(chan struct{}, 1)}
	t.ready = append(t.ready, s)
	return s
}

// begin starts the first turn, when all strands have joined.
func (t *turns) begin() {
	for _, s := range t.ready {
		if t.free.Load() {
			s.wake <- struct{}{}
		}
	}
	if !t.free.Load() {
		t.pass()
	}
}

// await waits for the first turn of a strand.
func (s *strand) await() { <-s.wake }

// yield gives up the turn, and returns when the strand has the turn again.
func (t *turns) yield() {
	if t.free.Load() {
		return
	}
	t.tick()
	s := t.has
	// A strand that meets a running transaction only waits for it, with longer and longer pauses.
	if t.held == 0 && t.random.Float64() < t.stay {
		return
	}
	t.pass()
	<-s.wake
}

// hold yields in the middle of a transaction.
func (t *turns) hold() {
	t.held++
	t.yield()
	t.held--
}

func (t *turns) pass() {
	t.has = t.ready[t.random.IntN(len(t.ready))]
	t.has.wake <- struct{}{}
}

// leave ends the strand that has the turn.
func (t *turns) leave() {
	if t.free.Load() {
		return
	}
	t.ready = slices.DeleteFunc(t.ready, func(s *strand) bool { return s == t.has })
	if len(t.ready) > 0 {
		t.pass()
	}
}
