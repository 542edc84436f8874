package subscriber

import "time"

// status is what a sequencer knows of the work that is left. See subscriber.ShardStatus.
type status struct {
	caughtUp        bool
	behind          uint64
	oldestUnacked   time.Time
	blocked, parked int
}

// status counts the events that are known and not handled. fresh reports that an aggregate has no
// position unless it was forgotten.
func (q *sequencer) status(fresh bool) status {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := status{caughtUp: q.caughtUp}
	oldest := int64(0)
	for st := range q.unfinished {
		switch st.state {
		case delayed:
			s.blocked++
		case parked:
			s.parked++
		}
		switch {
		case st.claimed || st.state == parked || fresh && !q.forgotten.has(st.id):
			s.behind += st.head - min(st.head, st.acked)
		default:
			s.behind++ // its position is read later
		}
		// Use the time of the first unacked event if it is in memory. Otherwise use that of the
		// last one, which is too late.
		at := st.hintAt
		if len(st.buffer.records) > 0 {
			at = st.buffer.records[0].WrittenAt.UnixMilli()
		}
		if !st.drained() && st.hint > 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	if oldest > 0 {
		s.oldestUnacked = time.UnixMilli(oldest)
	}
	return s
}
