package sequence

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Progress is what the committer has to store of a shard.
type Progress[W any] struct {
	Saved, Next Cursor
	rewinds     uint64 // the number of rewinds of the cursor
	// List contains the streams that must be on the behind list before the cursor moves to Next.
	// Unlist contains the streams whose entries are no longer necessary.
	List, Unlist []*Stream[W]
}

// Progress returns how far the cursor can move: up to where the last trailing read has come, and
// not past an event that is unstored, unless its aggregate is on the behind list.
func (q *Sequencer[W]) Progress() Progress[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := Progress[W]{Saved: q.saved, Next: Cursor{q.final, q.reconciledAt}, rewinds: q.rewinds}
	hold := func(st *Stream[W]) { p.Next.At = min(p.Next.At, st.shownAt) }
	for st := range q.dirty { // acked and not stored yet
		if st.covered() {
			continue
		}
		if st.shown > 0 {
			hold(st)
		}
		if st.reconciled > st.Stored.Load() {
			p.Next.ReconciledAt = q.saved.ReconciledAt
		}
	}
	now := q.now()
	for st := range q.unfinished {
		switch {
		case st.entry && q.isDone(st):
			p.Unlist = append(p.Unlist, st)
		case st.drained():
		case st.covered():
			if st.unexplained() && q.isStuck(st, now) {
				p.List = append(p.List, st)
			}
		case st.led > st.acked:
			p.List = append(p.List, st) // a restart would not find its events by the cursor
		case st.reconciled > st.acked:
			if q.isStuck(st, now) {
				p.List = append(p.List, st)
				continue
			}
			// After a restart only a reconciliation would find the event.
			p.Next.ReconciledAt = q.saved.ReconciledAt
			if st.shown > st.acked && st.shown != st.reconciled {
				// The cursor must stay before the event that the tail has shown.
				hold(st)
			}
		case st.shown == 0, st.claimed && st.shown <= st.acked:
			// The tail has not shown it yet.
		case st.shownAt >= q.final:
			// The cursor does not get there yet.
		case q.isStuck(st, now):
			p.List = append(p.List, st)
		default:
			hold(st)
		}
	}
	p.Next.At = max(p.Next.At, q.saved.At)
	return p
}

// isStuck reports whether an unfinished stream has failed or takes long, so that it must be listed.
// In a visit it may have failed before. The caller holds mu.
func (q *Sequencer[W]) isStuck(st *Stream[W], now time.Time) bool {
	return !q.Began.IsZero() && st.inherited != nil && st.state == delayed || now.Sub(st.pending) > q.BehindAfter && st.stuck(now, q.BehindAfter)
}

// SaveCursor records that the cursor is stored. If the cursor was rewound meanwhile, it must be
// stored again.
func (q *Sequencer[W]) SaveCursor(p Progress[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.rewinds == q.rewinds {
		q.saved = p.Next
	}
}

// DirtyStreams returns the streams whose position must be stored.
func (q *Sequencer[W]) DirtyStreams() []*Stream[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	streams := make([]*Stream[W], 0, len(q.dirty))
	for st := range q.dirty {
		streams = append(streams, st)
	}
	return streams
}

// Clean records where a position is stored. It may be higher than acked if a former owner had
// handled more events. Until then the stream is dirty, so it is not forgotten during a write.
func (q *Sequencer[W]) Clean(st *Stream[W], stored uint64) {
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

// isDone reports whether a stream is drained and its position is stored. A stream that a former
// owner has listed is not done before its end is known. The caller holds mu.
func (q *Sequencer[W]) isDone(st *Stream[W]) bool {
	_, dirty := q.dirty[st]
	return st.drained() && !dirty && st.inherited == nil && st.state != parked
}

// BeginListing is like ExpectEntry. needed is false if no entry is needed any more: this owner has
// parked the stream meanwhile, or the stream is done. A stream that is done may be forgotten
// already, and then the entry belongs to another stream with its id.
func (q *Sequencer[W]) BeginListing(st *Stream[W]) (entry storage.Behind, needed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if st.listed == always && !st.unexplained() && !st.outdated() || q.isDone(st) {
		return storage.Behind{}, false
	}
	return storage.Behind{Aggregate: st.ID, Head: q.expects(st), Failure: st.failure}, true
}

// ExpectEntry records that the stream may have an entry on the behind list from now on, so that the
// stream is not forgotten. It returns the stream's last event.
func (q *Sequencer[W]) ExpectEntry(st *Stream[W]) (head uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.expects(st)
}

// expects is ExpectEntry for a caller that holds mu.
func (q *Sequencer[W]) expects(st *Stream[W]) (head uint64) {
	st.entry = true
	q.unfinished[st] = struct{}{}
	return st.head
}

// BeginUnlisting records that the stream may have no entry from now on. It returns false if the
// stream is not done.
func (q *Sequencer[W]) BeginUnlisting(st *Stream[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isDone(st) {
		return false
	}
	st.listed = 0
	return true
}

// Explain records that the entry of a stream was written with a failure, or without one.
func (q *Sequencer[W]) Explain(st *Stream[W], f *storage.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if st.explained, st.explainedAttempts, st.explainedBegun = 0, 0, false; f != nil {
		st.explained, st.explainedAttempts, st.explainedBegun = f.Number, f.Attempts, f.Begun
	}
}

// SetListed records whether a stream has an entry on the behind list, after a write.
func (q *Sequencer[W]) SetListed(st *Stream[W], listed bool) {
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

// TakeUnverified removes some streams from the list of parked streams that must be verified, and
// returns them.
func (q *Sequencer[W]) TakeUnverified(most int) []*Stream[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most, len(q.unverified))
	some := q.unverified[:n:n]
	q.unverified = q.unverified[n:]
	return some
}

// Verify compares parked streams with positions. A stream whose position is at or after the event
// because of which it was parked continues. A stream whose position is not known is verified later.
func (q *Sequencer[W]) Verify(some []*Stream[W], positions map[aggregate.ID]uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, st := range some {
		position, known := positions[st.ID]
		switch {
		case !known:
			q.unverified = append(q.unverified, st)
		case position < st.inherited.Parked.Number:
			st.inherited = nil
		default:
			st.listed = 0
			q.setState(st, active)
			q.parked--
			q.ready(st, true)
		}
	}
}
