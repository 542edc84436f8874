package soak

import (
	"math/rand/v2"
	"slices"
)

// turns lets one strand run at a time, and the seed decides which. Whoever has the turn may use
// everything here.
type turns struct {
	random *rand.Rand
	stay   float64 // the chance to keep the turn
	held   int     // strands in the middle of a transaction
	tick   func()  // time passes
	free   bool    // everybody runs at once
	ready  []*strand
	has    *strand
}

// strand is what takes turns: a writer, with whatever goroutines work for it while it waits for
// them.
type strand struct {
	wake chan struct{}
	wire *wire
}

func (t *turns) join() *strand {
	s := &strand{wake: make(chan struct{}, 1)}
	t.ready = append(t.ready, s)
	return s
}

// begin returns the first turn, when all have joined.
func (t *turns) begin() {
	for _, s := range t.ready {
		if t.free {
			s.wake <- struct{}{}
		}
	}
	if !t.free {
		t.pass()
	}
}

// await is how a strand begins.
func (s *strand) await() { <-s.wake }

// yield is called by the one who has the turn, and returns when it has the turn again.
func (t *turns) yield() {
	if t.free {
		return
	}
	t.tick()
	s := t.has
	// Whoever meets a transaction in the middle only waits for it, with longer and longer pauses.
	if t.held == 0 && t.random.Float64() < t.stay {
		return
	}
	t.pass()
	<-s.wake
}

// hold is yield in the middle of a transaction.
func (t *turns) hold() {
	t.held++
	t.yield()
	t.held--
}

func (t *turns) pass() {
	t.has = t.ready[t.random.IntN(len(t.ready))]
	t.has.wake <- struct{}{}
}

// leave ends a strand that has the turn.
func (t *turns) leave() {
	if t.free {
		return
	}
	t.ready = slices.DeleteFunc(t.ready, func(s *strand) bool { return s == t.has })
	if len(t.ready) > 0 {
		t.pass()
	}
}
