package subscriber

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// progress is what the committer has to store of a shard.
type progress struct {
	saved, next savedCursor
	rewinds     uint64 // of the cursor, so far
	// list are the streams that have to be on the list of those behind before the cursor goes to
	// next, and unlist those that need no longer be.
	list, unlist []*stream
}

// progress reports how far the cursor can go: up to where the last trailing read is, and not past
// an event that is not acked and stored, unless its aggregate is on the list.
func (q *sequencer) progress() progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := progress{saved: q.saved, next: savedCursor{q.final, q.reconciledAt}, rewinds: q.rewinds}
	hold := func(st *stream) { p.next.at = min(p.next.at, st.hintAt) }
	for st := range q.dirty { // acked since, and not stored yet
		if st.covered() {
			continue
		}
		if st.hint > 0 {
			hold(st)
		}
		if st.reconciled > st.position.stored.Load() {
			p.next.reconciledAt = q.saved.reconciledAt
		}
	}
	now := q.now()
	for st := range q.unfinished {
		switch {
		case st.entry && q.isDone(st):
			p.unlist = append(p.unlist, st)
		case st.drained(), st.covered():
		case st.led > st.acked:
			p.list = append(p.list, st) // no cursor leads back to it
		case st.reconciled > st.acked:
			if q.isStuck(st, now) {
				p.list = append(p.list, st)
				continue
			}
			p.next.reconciledAt = q.saved.reconciledAt // nothing but a reconciliation leads back to it
			if st.hint > st.acked && st.hint != st.reconciled {
				hold(st) // and the cursor to what the tail has shown
			}
		case st.hint == 0, st.claimed && st.hint <= st.acked:
			// The tail has not shown it yet.
		case st.hintAt >= q.final:
			// The cursor does not get there yet.
		case q.isStuck(st, now):
			p.list = append(p.list, st)
		default:
			hold(st)
		}
	}
	p.next.at = max(p.next.at, q.saved.at)
	return p
}

// isStuck reports that a stream with something left to do has failed, or takes long, and so is to
// be listed. The caller holds mu.
func (q *sequencer) isStuck(st *stream, now time.Time) bool {
	return now.Sub(st.pending) > q.behindAfter && st.stuck(now, q.behindAfter)
}

// saveCursor notes that the cursor is stored. If it has turned back since, it is to be stored
// again.
func (q *sequencer) saveCursor(p progress) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.rewinds == q.rewinds {
		q.saved = p.next
	}
}

func (q *sequencer) dirtyStreams() []*stream {
	q.mu.Lock()
	defer q.mu.Unlock()
	streams := make([]*stream, 0, len(q.dirty))
	for st := range q.dirty {
		streams = append(streams, st)
	}
	return streams
}

// clean notes where a position is stored: perhaps further than what is acked, where a former owner
// had handled more. Until then the stream is dirty, so that it is not forgotten in the middle of a
// write.
func (q *sequencer) clean(st *stream, stored uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if stored > st.acked {
		st.observe(stored)
		st.acked = stored
		st.forgetFailure()
	}
	if st.acked == stored {
		delete(q.dirty, st)
	}
	q.readmit()
}

// isDone reports that a stream is drained and its position stored. One that a former owner has
// listed is not before its end is known. The caller holds mu.
func (q *sequencer) isDone(st *stream) bool {
	_, dirty := q.dirty[st]
	return st.drained() && !dirty && st.inherited == nil && st.state != parked
}

// beginListing is expectEntry, unless no entry is needed any more: this owner has parked the stream
// meanwhile, or nothing is left to do. Such a stream may be forgotten already, and the entry is
// then that of another one with its id.
func (q *sequencer) beginListing(st *stream) (entry checkpoint.Behind, needed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if st.listed == always || q.isDone(st) {
		return checkpoint.Behind{}, false
	}
	return checkpoint.Behind{Aggregate: st.id, Head: q.expects(st), Failure: st.failure}, true
}

// expectEntry notes that there may be an entry of the list from now on, so that the stream is not
// forgotten. It returns the stream's last event.
func (q *sequencer) expectEntry(st *stream) (head uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.expects(st)
}

// expects is expectEntry. The caller holds mu.
func (q *sequencer) expects(st *stream) (head uint64) {
	st.entry = true
	q.unfinished[st] = struct{}{}
	return st.head
}

// beginUnlisting notes that there may be no entry from now on, if nothing is left to do.
func (q *sequencer) beginUnlisting(st *stream) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isDone(st) {
		return false
	}
	st.listed = 0
	return true
}

func (q *sequencer) setListed(st *stream, listed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.entry = listed
	if st.listed = 0; listed {
		st.listed = always
		return
	}
	if st.drained() {
		delete(q.unfinished, st)
	}
}

// takeUnverified takes some parked streams off those that are to be verified.
func (q *sequencer) takeUnverified(most int) []*stream {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most, len(q.unverified))
	some := q.unverified[:n:n]
	q.unverified = q.unverified[n:]
	return some
}

// verify compares parked streams with positions. The group is beyond the event by which one was
// parked: then it goes on. One whose position is not known is verified later.
func (q *sequencer) verify(some []*stream, positions map[aggregate.ID]uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, st := range some {
		position, known := positions[st.id]
		switch {
		case !known:
			q.unverified = append(q.unverified, st)
		case position < st.inherited.Parked.Number:
			st.inherited = nil
		default:
			st.listed, st.state = 0, active
			q.ready(st, true)
		}
	}
}
