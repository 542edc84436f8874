package subscriber

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// finding is the kind of read that found an event.
type finding int

const (
	byTail finding = iota
	byTrailing
	byReconciliation
)

// offer takes the events that the live read has found. The tail is final up to a time.
func (q *sequencer) enqueue(records []*journal.Record, caughtUp bool, final int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range records {
		st := q.stream(r.Aggregate)
		st.observeTail(r)
		switch {
		case st.claimed && r.Number <= st.acked:
			q.stats.duplicates.Add(1)
		case !st.cautious && st.state != parked:
			st.buffer.add(r, q.budget)
		}
		q.schedule(st, false)
	}
	q.final, q.caughtUp = final, caughtUp
	q.forget()
}

// hear takes numbers alone: what a trailing read found, or a reconciliation. It returns those that no read
// before had found.
func (q *sequencer) observe(records []*journal.Record, by finding, final int64) (missed []*journal.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range records {
		st := q.stream(r.Aggregate)
		if by == byReconciliation {
			st.observeReconciled(r)
			q.schedule(st, true) // what a reconciliation finds is old, and may be much
			continue
		}
		switch {
		case r.Number <= st.head || st.claimed && r.Number <= st.acked:
			q.stats.duplicates.Add(1)
		case !q.forgotten.has(st.id):
			missed = append(missed, r)
		}
		st.observeTail(r)
		q.schedule(st, false)
	}
	if by != byReconciliation {
		q.final = final
	}
	q.forget()
	return missed
}

// wake is told of a commit in this process. While the tail is still being read from far behind, the
// event's turn comes by itself, and cheaper.
func (q *sequencer) wake(id aggregate.ID, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.caughtUp || q.ended || q.failing >= q.maxFailing || q.budget.isFull() {
		return // the tail shows the event when the shard reads on
	}
	st := q.stream(id)
	st.observe(version)
	q.schedule(st, false)
}

// begin starts a term where a former owner's cursor is, with what that has listed.
func (q *sequencer) begin(saved savedCursor, reconciled time.Time, behind []checkpoint.Behind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.saved, q.final, q.reconciledAt = saved, saved.at, reconciled
	for _, b := range behind {
		q.inherit(b)
	}
}

// inherit takes up an entry of the list. The caller holds mu.
func (q *sequencer) inherit(b checkpoint.Behind) {
	st := q.stream(b.Aggregate)
	st.observe(b.Head)
	st.entry, st.inherited = true, &b
	q.unfinished[st] = struct{}{}
	st.listed = b.Head
	st.failure = b.Failure // known until an attempt in this term fails, also where the entry is written again before
	if b.Parked == nil {
		st.pending, st.state = q.now(), active
		q.ready(st, true)
		return
	}
	// The owner that parked it never deletes the entry, and older owners cannot.
	st.state, st.listed = parked, always
	st.acked = b.Parked.Number - min(1, b.Parked.Number)
	q.unverified = append(q.unverified, st)
}

// turnBack has the cursor go back to a time, and a reconciliation find what it has hidden.
func (q *sequencer) rewind(to int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rewinds++
	q.final, q.reconciledAt = to, time.Time{}
	q.saved = savedCursor{} // else a reconciliation of before would count as done where this one is not
}

func (q *sequencer) isCaughtUp() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.caughtUp
}

// lastSweep reports when the shard was swept, and whether it may be now. A reconciliation is of the turns of
// the cursor so far.
func (q *sequencer) lastReconciliation() (at time.Time, rewinds uint64, may bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reconciledAt, q.rewinds, q.caughtUp && !q.ended
}

// setSwept notes when a reconciliation began that is done. One that began before the cursor turned back may
// have missed what that has hidden.
func (q *sequencer) setReconciled(at time.Time, rewinds uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rewinds == q.rewinds {
		q.reconciledAt = at
	}
}

func (q *sequencer) finalAt() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.final
}

// trim has streams hold no more than their share.
func (q *sequencer) trim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, st := range q.streams {
		st.buffer.trim(q.budget.share(), q.budget)
	}
}
