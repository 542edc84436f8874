package lanes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stream is something to serve. It is not empty, so each has an address of its own.
type stream struct{ _ int }

// stepped contains lanes whose servings end when the test ends them.
type stepped struct {
	*Pool[*stream]
	serving chan *stream  // a stream that a lane begins to serve
	step    chan struct{} // ends one serving
	failing func(*stream) bool
}

func newStepped(lanesAtOnce int, failing func(*stream) bool) *stepped {
	s := &stepped{serving: make(chan *stream, 1000), step: make(chan struct{}), failing: failing}
	s.Pool = New(lanesAtOnce, func(st *stream) bool {
		s.serving <- st
		<-s.step
		if s.failing(st) {
			s.Run(st, true) // the turn has no pause
		}
		return false
	})
	return s
}

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
		l.Run(&stream{}, true)
	}
	assert.Equal(t, 4, l.serves())
	healthy := &stream{}
	l.Run(healthy, false)
	assert.Equal(t, 5, l.serves(), "it is served at once")
	l.Stop()
	close(l.step)
	l.Wait()
}

func TestStreamsThatHangDoNotHoldUpOthersThatFailed(t *testing.T) {
	t.Parallel()
	for lanes, hanging := range map[int]int{2: 1, 3: 2, 8: 6, 64: 55} {
		l := newStepped(lanes, func(*stream) bool { return false })
		for range hanging {
			l.Run(&stream{}, true)
		}
		other := &stream{}
		l.Run(other, true)
		served := map[*stream]bool{}
		for range hanging + 1 {
			served[<-l.serving] = true
		}
		require.True(t, served[other], "with %d lanes", lanes)
		close(l.step)
		l.Wait()
	}
}

func TestAStreamThatHasNotFailedGoesFirst(t *testing.T) {
	t.Parallel()
	failing := map[*stream]bool{}
	l := newStepped(1, func(st *stream) bool { return failing[st] })
	for range 100 {
		st := &stream{}
		failing[st] = true
		l.Run(st, true)
	}
	<-l.serving
	healthy := make([]*stream, 16)
	for i := range healthy {
		healthy[i] = &stream{}
		l.Run(healthy[i], false)
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
	l.Stop()
	close(l.step)
	l.Wait()
}

func TestOneLaneServesStreamsThatFailed(t *testing.T) {
	t.Parallel()
	l := newStepped(1, func(*stream) bool { return false })
	l.Run(&stream{}, true)
	<-l.serving
	close(l.step)
	l.Wait()
	assert.Zero(t, l.serves())
}
