package sequence

import "time"

// Status is what a sequencer knows of the work that is left. See subscriber.ShardStatus.
type Status struct {
	CaughtUp        bool
	Behind          uint64
	OldestUnacked   time.Time
	Blocked, Parked int
}

// Status counts the events that are known and not handled. fresh reports that an aggregate has no
// position unless it was forgotten.
func (q *Sequencer[W]) Status(fresh bool) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Status{CaughtUp: q.caughtUp}
	oldest := int64(0)
	for st := range q.unfinished {
		switch st.state {
		case delayed:
			s.Blocked++
		case parked:
			s.Parked++
		}
		switch {
		case st.claimed || st.state == parked || fresh && !q.forgotten.has(st.ID):
			s.Behind += st.head - min(st.head, st.acked)
		default:
			s.Behind++ // its position is read later
		}
		// Use the time of the first unacked event if it is in memory. Otherwise use that of the
		// last one, which is too late.
		at := st.shownAt
		if len(st.buffer.records) > 0 {
			at = st.buffer.records[0].WrittenAt.UnixMilli()
		}
		if !st.drained() && st.shown > 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	if oldest > 0 {
		s.OldestUnacked = time.UnixMilli(oldest)
	}
	return s
}
