package sequence

import (
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// StreamStatus is what a sequencer knows of one stream. See subscriber.AggregateStatus.
type StreamStatus struct {
	Acked   uint64 // 0 if the position is not known yet
	Failure *storage.Failure
	Parked  bool
}

// StatusOf returns what is known of a stream. It returns false if the stream is not in memory.
func (q *Sequencer[W]) StatusOf(id aggregate.ID) (s StreamStatus, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.streams[id.Value]
	if st == nil {
		return StreamStatus{}, false
	}
	s.Parked = st.state == parked
	if st.claimed {
		s.Acked = st.acked
	}
	if st.failure != nil && st.failure.Number > s.Acked {
		f := *st.failure
		s.Failure = &f
	}
	return s, true
}
