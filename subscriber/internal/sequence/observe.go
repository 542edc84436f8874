package sequence

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Needs reports whether Enqueue would keep one of the events first to last of an aggregate. It
// would not if they are handled, or if a worker has read them because a commit of this process was
// reported. If they are needed later nevertheless, a worker reads them again.
func (q *Sequencer[W]) Needs(id aggregate.ID, first, last uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.streams[id.Value]
	switch {
	case st == nil:
		return true
	case st.claimed && last <= st.acked, !st.takes():
		return false
	}
	if st.claimed {
		first = max(first, st.acked+1)
	}
	return !st.buffer.hasAll(first, last)
}

// Enqueue adds the events that the live read has found. Of those in unread it has found the numbers
// only. The tail is final up to the time final.
func (q *Sequencer[W]) Enqueue(records []*journaltype.Record, caughtUp bool, final int64, unread ...*journaltype.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range unread {
		q.found(r)
	}
	for _, r := range records {
		if st := q.found(r); st.takes() && (!st.claimed || r.Number > st.acked) {
			st.buffer.add(r, q.budget)
		}
	}
	q.final, q.caughtUp = final, caughtUp
	q.forget()
	q.endRead() // what a limit has prevented has requested a poll
}

// found observes an event that the live read has found. The caller holds mu.
func (q *Sequencer[W]) found(r *journaltype.Record) *Stream[W] {
	st := q.stream(r.Aggregate)
	q.noteFound(st, r.Number)
	st.observeTail(r)
	if st.claimed && r.Number <= st.acked {
		q.duplicates.Add(1)
	}
	q.schedule(st, false)
	return st
}

// ObserveReconciled adds the numbers of events that a reconciliation has found.
func (q *Sequencer[W]) ObserveReconciled(records []*journaltype.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range records {
		st := q.stream(r.Aggregate)
		st.observeReconciled(r)
		q.schedule(st, true) // these events are old, and there may be many
	}
	q.forget()
}

// ObserveTail adds the numbers of events that a read of the tail has found, without their content.
// It returns the records that no earlier read has found. The tail is final up to the time final.
func (q *Sequencer[W]) ObserveTail(records []*journaltype.Record, final int64) (missed []*journaltype.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range records {
		st := q.stream(r.Aggregate)
		switch {
		case r.Number <= st.head || st.claimed && r.Number <= st.acked:
			q.duplicates.Add(1)
		case !q.forgotten.has(st.ID):
			missed = append(missed, r)
			q.noteFound(st, r.Number)
		}
		st.observeTail(r)
		q.schedule(st, false)
	}
	q.final = final
	q.forget()
	return missed
}

// Begin starts a term with the cursor and the behind list of the former owner.
func (q *Sequencer[W]) Begin(saved Cursor, reconciled time.Time, behind []storage.Behind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.saved, q.final, q.reconciledAt = saved, saved.At, reconciled
	for _, b := range behind {
		q.inherit(b)
	}
	// A visit verifies only some of many parked streams. The order is random, so that each stream
	// is verified in some visit.
	rand.Shuffle(len(q.unverified), func(i, k int) { q.unverified[i], q.unverified[k] = q.unverified[k], q.unverified[i] })
}

// inherit adds an entry of the behind list. The caller holds mu.
func (q *Sequencer[W]) inherit(b storage.Behind) {
	st := q.stream(b.Aggregate)
	st.observe(b.Head)
	st.entry, st.inherited = true, &b
	q.unfinished[st] = struct{}{}
	st.listed = b.Head
	// The failure stays until an attempt in this term fails, even if the entry is written again
	// before.
	if st.failure = b.Failure; b.Failure != nil {
		st.explained, st.explainedAttempts, st.explainedBegun = b.Failure.Number, b.Failure.Attempts, b.Failure.Begun
	}
	if b.Parked == nil {
		st.pending = q.now()
		st.unreported = q.ReportedOnly
		switch {
		case st.unreported, q.waits(st):
			q.setState(st, delayed)
		case !q.Began.IsZero() && b.Failure != nil && b.Failure.Attempts > q.PacedAfter:
			st.paced = true
			q.paced = append(q.paced, st)
			q.setState(st, delayed)
		default:
			q.setState(st, active)
			q.ready(st, true)
		}
		return
	}
	// The owner that has parked the aggregate never deletes the entry, and earlier owners cannot.
	q.setState(st, parked)
	st.listed = always
	q.parked++
	st.acked = b.Parked.Number - min(1, b.Parked.Number)
	q.unverified = append(q.unverified, st)
}

// waits reports whether the next attempt at a listed stream was not due when the visit began. The
// caller holds mu.
func (q *Sequencer[W]) waits(st *Stream[W]) bool {
	return !q.Began.IsZero() && st.failure.Waits(q.Began)
}

// TakePaced returns the listed streams of a visit that wait for Resume because they have failed
// often, in the order in which they became due. Streams that cannot be read stay the first ones, so
// every eighth one is any of the others.
func (q *Sequencer[W]) TakePaced() (paced []*Stream[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	paced, q.paced = q.paced, nil
	slices.SortFunc(paced, func(a, b *Stream[W]) int { return a.failure.Due.Compare(b.failure.Due) })
	for i := 7; i < len(paced); i += 8 {
		k := i + rand.IntN(len(paced)-i)
		paced[i], paced[k] = paced[k], paced[i]
	}
	return paced
}

// Continues reports whether a stream that TakePaced has returned has nothing to do, because its
// events were handled before. It reports this once.
func (q *Sequencer[W]) Continues(st *Stream[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	continues := st.paced && st.state == idle
	st.paced = st.paced && !continues
	return continues
}

// Rewind moves the cursor back to a time, and requests a reconciliation that finds the events that
// the cursor has hidden.
func (q *Sequencer[W]) Rewind(to int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rewinds++
	q.final, q.reconciledAt = to, time.Time{}
	// With the saved cursor of before, an earlier reconciliation would count as done although the
	// one that is due now is not.
	q.saved = Cursor{}
}

// IsCaughtUp reports whether the live read has reached the end of the tail.
func (q *Sequencer[W]) IsCaughtUp() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.caughtUp
}

// LastReconciliation returns the time of the last reconciliation, the number of rewinds of the
// cursor, and whether a reconciliation may begin now.
func (q *Sequencer[W]) LastReconciliation() (at time.Time, rewinds uint64, may bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reconciledAt, q.rewinds, q.caughtUp && !q.ended
}

// SetReconciled stores the time at which a finished reconciliation began. A reconciliation that
// began before a rewind does not count, because it may have missed events.
func (q *Sequencer[W]) SetReconciled(at time.Time, rewinds uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rewinds == q.rewinds {
		q.reconciledAt = at
	}
}

// FinalAt returns the time up to which all trailing reads have come, in milliseconds.
func (q *Sequencer[W]) FinalAt() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.final
}

// Trim limits all streams to their share of the budget. If the budget is so small that all shares
// exceed it, Trim limits them further.
func (q *Sequencer[W]) Trim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, size := range []int{q.budget.Share(), q.budget.part()} {
		if !q.budget.isFull() {
			return
		}
		for _, st := range q.streams {
			st.buffer.trim(size, q.budget)
		}
	}
}
