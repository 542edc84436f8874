package sequence

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// settling says when a visit has no more to do.
type settling struct {
	busy    int // the number of streams that are active or pausing
	settles chan struct{}
}

// setState changes the state of a stream, which is served no longer. The caller holds mu.
func (q *Sequencer[W]) setState(st *Stream[W], to streamState) {
	if st.state.isBusy() {
		q.settling.busy--
	}
	st.state, st.serving = to, time.Time{}
	if to.isBusy() {
		q.settling.busy++
	}
	if q.settling.busy == 0 {
		select {
		case q.settling.settles <- struct{}{}:
		default:
		}
	}
}

func (s streamState) isBusy() bool { return s == active || s == pausing }

// Settles receives a value when no stream has anything to do for now.
func (q *Sequencer[W]) Settles() <-chan struct{} { return q.settling.settles }

// EndIfSettled prevents new work, like End, if no stream has anything to do for now. A report that
// comes later is refused, so none is lost in between.
func (q *Sequencer[W]) EndIfSettled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.settling.busy == 0 {
		q.ended = true
	}
	return q.ended
}

// LeaveOutTail makes the sequencer act on reports although the tail is not read. From then on it
// refuses reports of aggregates for which unread returns true: they may have entries on the behind
// list that were not read. A nil unread refuses none. LeaveOutTail returns those of the earlier
// reports that are refused, for this reason or because of a limit.
func (q *Sequencer[W]) LeaveOutTail(unread func(aggregate.ID) bool) (refused map[aggregate.ID]uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.caughtUp, q.unread = true, unread
	return q.endRead()
}

// Unfinished returns the number of streams that have unhandled events and are not parked, and the
// time at which the first of them must be tried again. The time is zero if there is none. Listed
// streams that a visit does not serve do not count.
func (q *Sequencer[W]) Unfinished(now time.Time) (count int, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for st := range q.unfinished {
		if st.state == parked || st.unreported || q.isDone(st) {
			continue
		}
		count++
		again := now
		switch {
		case st.failure.Waits(now):
			again = st.failure.Due
		case st.paced:
			again = now.Add(q.PacedFor)
		}
		if due.IsZero() || again.Before(due) {
			due = again
		}
	}
	return count, due
}
