package subscriber

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stepped contains lanes whose servings end when the test ends them.
type stepped struct {
	*lanes
	serving chan *stream  // a stream that a lane begins to serve
	step    chan struct{} // ends one serving
	failing func(*stream) bool
}

func newStepped(lanesAtOnce int, failing func(*stream) bool) *stepped {
	s := &stepped{serving: make(chan *stream, 1000), step: make(chan struct{}), failing: failing}
	s.lanes = &lanes{max: lanesAtOnce, serve: func(t turn) bool {
		s.serving <- t.stream
		<-s.step
		if s.failing(t.stream) {
			s.run(t.stream, true) // the turn has no pause
		}
		return false
	}}
	return s
}

// run queues a stream.
func (s *stepped) run(st *stream, failed bool) { s.lanes.run(turn{stream: st}, failed) }

// serves returns the number of streams that are served now.
func (s *stepped) serves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

func TestStreamsThatFailedLeaveHalfOfTheLanesToOthers(t *testing.T) {
	t.Parallel()
	l := newStepped(8, func(*stream) bool { return true })
	for range 100 {
		l.run(&stream{}, true)
	}
	assert.Equal(t, 4, l.serves())
	healthy := &stream{}
	l.run(healthy, false)
	assert.Equal(t, 5, l.serves(), "it is served at once")
	l.stop()
	close(l.step)
	l.wait()
}

func TestStreamsThatHangDoNotHoldUpOthersThatFailed(t *testing.T) {
	t.Parallel()
	for lanes, hanging := range map[int]int{2: 1, 3: 2, 8: 6, 64: 55} {
		l := newStepped(lanes, func(*stream) bool { return false })
		for range hanging {
			l.run(&stream{}, true)
		}
		other := &stream{}
		l.run(other, true)
		served := map[*stream]bool{}
		for range hanging + 1 {
			served[<-l.serving] = true
		}
		require.True(t, served[other], "with %d lanes", lanes)
		close(l.step)
		l.wait()
	}
}

func TestAStreamThatHasNotFailedGoesFirst(t *testing.T) {
	t.Parallel()
	failing := map[*stream]bool{}
	l := newStepped(1, func(st *stream) bool { return failing[st] })
	for range 100 {
		st := &stream{}
		failing[st] = true
		l.run(st, true)
	}
	<-l.serving
	healthy := make([]*stream, 16)
	for i := range healthy {
		healthy[i] = &stream{}
		l.run(healthy[i], false)
	}
	served, failed := 0, 0
	for served < len(healthy) {
		l.step <- struct{}{}
		if st := <-l.serving; failing[st] {
			failed++
		} else {
			require.Same(t, healthy[served], st, "first come, first served")
			served++
		}
	}
	assert.Equal(t, 2, failed, "one of eight, so that what failed goes on too")
	l.stop()
	close(l.step)
	l.wait()
}

func TestOneLaneServesStreamsThatFailed(t *testing.T) {
	t.Parallel()
	l := newStepped(1, func(*stream) bool { return false })
	l.run(&stream{}, true)
	<-l.serving
	close(l.step)
	l.wait()
	assert.Zero(t, l.serves())
}

func TestAggregatesWithFewFailuresGoFirstAndOthersTakeTurns(t *testing.T) {
	t.Parallel()
	d := &deliverer{term: &term{stopping: make(chan struct{})}}
	p := &pace{refilled: time.Now()}
	streams := map[string]*stream{}
	wait := func(name string, failures int) {
		streams[name] = &stream{}
		p.add(turn{deliverer: d, stream: streams[name]}, failures)
	}
	wait("blocked for long", 5_000)
	wait("blocked", 10)
	wait("new", 4)
	wait("newer", 5)
	wait("new too", 4)
	due := p.take(func() { p.credit = 10 })
	for i, name := range []string{"new", "new too", "newer", "blocked for long", "blocked"} {
		assert.Same(t, streams[name], due[i].stream, name)
	}
}
