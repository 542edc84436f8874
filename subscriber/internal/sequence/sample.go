package sequence

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// sample is a commit of this process whose event the tail must show. There is one at a time.
type sample[W any] struct {
	stream  *Stream[W]
	version uint64
	at      int64 // in milliseconds
}

// sampled starts a sample with a commit, unless there is one. The caller holds mu.
func (q *Sequencer[W]) sampled(st *Stream[W], version uint64) {
	if q.sample.stream == nil {
		q.sample = sample[W]{st, version, q.clock().UnixMilli()}
	}
}

// sampleTolerance is the time by which the clock may be corrected between a commit and its sample,
// so that the sample is not judged too early.
const sampleTolerance = 5 * time.Second

// TakeMissed returns a commit of this process that no read of the tail has shown, although the last
// trailing read has passed its date.
func (q *Sequencer[W]) TakeMissed() (id aggregate.ID, version uint64, missed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sample
	if s.stream == nil || q.final < s.at+sampleTolerance.Milliseconds() {
		return aggregate.ID{}, 0, false
	}
	q.sample = sample[W]{}
	return s.stream.ID, s.version, s.stream.shown < s.version && q.streams[s.stream.ID.Value] == s.stream
}
