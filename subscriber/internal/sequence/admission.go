package sequence

import "time"

// Admit reports whether a worker may deliver events of a stream. It may not while too many
// positions are unstored, as in an outage of the store. Otherwise acked positions would fill the
// memory, be stored late, and be delivered again after a crash. Admit requests a flush, and the
// stream returns to the workers when some positions are stored.
func (q *Sequencer[W]) Admit(st *Stream[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.dirty) < q.Memory.share(failingPart, q.MaxUnstored) {
		return true
	}
	st.serving = time.Time{}
	q.waiting = append(q.waiting, st)
	select {
	case q.full <- struct{}{}:
	default:
	}
	return false
}

// WantsFlush receives a value when streams wait for positions to be stored.
func (q *Sequencer[W]) WantsFlush() <-chan struct{} { return q.full }

// readmit returns waiting streams to the workers, up to the number of free places. If no position
// is unstored, it returns all of them. A stream that continues may make no position unstored, and
// then nothing would call readmit for the others.
func (q *Sequencer[W]) readmit() {
	n := min(len(q.waiting), max(0, q.Memory.share(failingPart, q.MaxUnstored)-len(q.dirty)))
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

// AwaitHealth waits while very many streams fail, as in an outage of a service that a handler
// needs. Otherwise the shard would read all of its history, and retry each aggregate again and
// again. AwaitHealth returns false when the shard stops, and in a visit when it has waited for a
// few seconds, because nothing may continue before the visit ends.
func (q *Sequencer[W]) AwaitHealth(stopping <-chan struct{}) bool {
	began := q.now()
	for {
		q.mu.Lock()
		healthy := !q.Memory.isFull(q.unparked())
		if !healthy && q.changed == nil {
			q.changed = make(chan struct{})
		}
		changed := q.changed
		q.mu.Unlock()
		if healthy {
			select {
			case <-stopping:
				return false
			default:
				return true
			}
		}
		if !q.Began.IsZero() && q.now().Sub(began) >= visitPatience {
			return false
		}
		select {
		case <-changed:
		case <-time.After(lull): // streams of other shards may have continued
		case <-stopping:
			return false
		}
	}
}

const visitPatience = 5 * time.Second

// IsHealthy reports whether AwaitHealth would not wait.
func (q *Sequencer[W]) IsHealthy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.Memory.isFull(q.unparked())
}

// HasRoom reports whether a reconciliation may add streams: fewer than the maximum are unfinished.
func (q *Sequencer[W]) HasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unparked() < q.Memory.share(failingPart, q.MaxUnfinished)
}

// unparked returns the number of unfinished streams, without those that wait for an operator. The
// caller holds mu.
func (q *Sequencer[W]) unparked() int { return len(q.unfinished) - q.parked }

// notify wakes the callers of AwaitHealth.
func (q *Sequencer[W]) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}
