package subscriber

import "time"

// admit reports whether a stream may be delivered. It may not while too many positions are not
// stored yet, as in an outage of the store: what is acked meanwhile would pile up in memory, be
// stored late, and come again after a crash. The stream comes back to the workers when some are
// stored.
func (q *sequencer) admit(st *stream) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.dirty) < q.maxUnstored {
		return true
	}
	st.serving = time.Time{}
	q.waiting = append(q.waiting, st)
	return false
}

// readmit brings streams back for which there is room now: all of them once nothing is dirty, since
// those that go on need not make anything dirty, and nothing else would bring the others back.
func (q *sequencer) readmit() {
	n := min(len(q.waiting), max(0, q.maxUnstored-len(q.dirty)))
	if len(q.dirty) == 0 {
		n = len(q.waiting)
	}
	for _, st := range q.waiting[:n] {
		q.ready(st, st.cautious)
	}
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
}

// awaitHealth waits while very many streams fail, as in an outage of what a handler needs: all of
// history would be read, and each of its aggregates tried again and again. It returns false when
// the shard stops.
func (q *sequencer) awaitHealth(stopping <-chan struct{}) bool {
	for {
		q.mu.Lock()
		healthy := q.failing < q.maxFailing
		if !healthy && q.changed == nil {
			q.changed = make(chan struct{})
		}
		changed := q.changed
		q.mu.Unlock()
		if healthy {
			return !isClosed(stopping)
		}
		select {
		case <-changed:
		case <-stopping:
			return false
		}
	}
}

func (q *sequencer) isHealthy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failing < q.maxFailing
}

// hasRoom reports that a reconciliation may add streams: few enough have something left to do.
func (q *sequencer) hasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := 0
	for st := range q.unfinished {
		if st.state != parked {
			waiting++
		}
		if waiting == q.maxUnfinished {
			return false
		}
	}
	return true
}

// tell has those who wait look again.
func (q *sequencer) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}
