package sequence

import (
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Stream contains the state of one aggregate's events. Two numbers define it: head, the highest
// event that is known to exist, and acked. The events between them are delivered in order, from the
// buffer if the tail brought them, otherwise read from the journal.
type Stream[W any] struct {
	ID aggregate.ID

	// The sequencer's mutex guards the following fields.

	state   streamState
	claimed bool // acked is valid
	acked   uint64
	head    uint64
	buffer  buffer

	// shown is the highest event that a read of the tail, a reconciliation or a corrupt item has
	// shown. shownAt is its time in milliseconds, or the time up to which the tail was final. The
	// shard's cursor may pass shownAt only when the event is acked and stored, or when the stream
	// is listed as behind. After a restart this event shows that the stream has unhandled events.
	shown   uint64
	shownAt int64
	// pending is the time since which the stream has unhandled events. It is zero if it has none.
	pending time.Time
	// serving is the time since which a worker serves it. It is zero if none does.
	serving time.Time
	// cautious reports that the stream was put off, so that only its next event is read. See
	// PutOff.
	cautious bool
	// corrupt is an event that could not be read and is not read ahead. It is 0 if there is none.
	corrupt uint64
	// failure is the last failed attempt at the next event, for the entry on the behind list. It is
	// nil if there is none.
	failure *storage.Failure
	// explained is the event whose failure the entry has. It is 0 if the entry has none.
	explained uint64
	// explainedAttempts is the number of attempts that the entry has, and explainedBegun says that
	// the result of the last one is not known.
	explainedAttempts int
	explainedBegun    bool

	// listed is the highest event that the entry on the behind list leads to after a restart. It is
	// 0 if there is no entry.
	listed uint64
	entry  bool // there may be an entry on the behind list
	// inherited is the entry of a former owner, until it is taken over.
	inherited *storage.Behind
	// unreported says that a visit serves the stream only if it is reported.
	unreported bool
	// paced says that the stream had failed often when it was listed, and has delivered nothing
	// since.
	paced      bool
	led        uint64 // the highest event that only the behind list led to
	reconciled uint64 // the highest event that only a reconciliation has shown
	// hinted is the version of a hint from outside, 0 if there is none. The stream is not
	// drained before its worker has read what follows the known events.
	hinted uint64

	// Stored is the stored position. Whoever writes it holds a lock of the committer.
	Stored atomic.Uint64
	// Work is what the workers keep with the stream. The mutex does not guard it.
	Work W
}

type streamState int

const (
	idle    streamState = iota
	active              // a worker serves it, or it is queued for one
	pausing             // waits for another attempt that is due soon
	delayed             // waits for another attempt after a nack or a failed read
	parked              // waits until an operator unparks it
)

// always is the value of listed if the entry leads to every event, including later ones.
const always = ^uint64(0)

// observe records that an event exists.
func (s *Stream[W]) observe(number uint64) { s.head = max(s.head, number) }

// observeTail records that the tail has shown an event.
func (s *Stream[W]) observeTail(r *journaltype.Record) {
	s.observe(r.Number)
	if r.Number > s.shown || r.Number == s.reconciled {
		s.shown, s.shownAt = r.Number, r.WrittenAt.UnixMilli()
	}
	if r.Number >= s.reconciled {
		s.reconciled = 0
	}
}

// observeReconciled records that a reconciliation has found an event. If the tail has shown an
// unhandled event, the cursor must still lead to that.
func (s *Stream[W]) observeReconciled(r *journaltype.Record) {
	s.observe(r.Number)
	stored := s.Stored.Load()
	// A commit of this process may have reported the event before the tail has shown it.
	if r.Number <= max(s.shown, stored) {
		return
	}
	s.reconciled = r.Number
	if s.shown <= stored {
		s.shown, s.shownAt = r.Number, r.WrittenAt.UnixMilli()
	}
}

// takes reports whether events that the tail brings are added to the buffer.
func (s *Stream[W]) takes() bool { return !s.cautious && s.state != parked }

// IsClaimed reports whether the position is known. Only the stream's worker may ask.
func (s *Stream[W]) IsClaimed() bool { return s.claimed }

// IsInherited reports whether an entry of a former owner must be taken over first. Only the
// stream's worker may ask.
func (s *Stream[W]) IsInherited() bool { return s.inherited != nil }

// drained reports whether all known events are acked, and no hint says that there are more.
func (s *Stream[W]) drained() bool { return s.claimed && s.acked >= max(s.head, s.hinted) }

// forgetFailure removes the failure if its event is handled.
func (s *Stream[W]) forgetFailure() {
	if s.failure != nil && s.failure.Number <= s.acked {
		s.failure = nil
	}
}

// covered reports whether the entry on the behind list leads to all unhandled events.
func (s *Stream[W]) covered() bool { return s.listed >= s.head && s.listed > 0 }

// unexplained reports that an attempt has failed since the entry was written, which says that the
// handler takes long, or why an earlier event had failed.
func (s *Stream[W]) unexplained() bool {
	return s.state != parked && s.failure != nil && s.failure.Number > s.explained
}

// outdated reports that there were more attempts at the next event than its entry says, that the
// entry lacks the result of the last one, or that there is no entry.
func (s *Stream[W]) outdated() bool {
	f := s.failure
	return s.state != parked && f != nil && f.Number > s.acked && f.Attempts > 0 &&
		(f.Number > s.explained || f.Attempts > s.explainedAttempts || s.explainedBegun && !f.Begun)
}

// stuck reports whether a stream has failed, or its handler takes long. A stream that only waits
// for a worker is not stuck.
func (s *Stream[W]) stuck(now time.Time, long time.Duration) bool {
	return s.cautious || !s.serving.IsZero() && now.Sub(s.serving) > long
}

// next returns the event to deliver, or the range of events to read before that, or neither. A
// range without an end means that a hint says that there are events.
func (s *Stream[W]) next() (r *journaltype.Record, from, to uint64) {
	if s.acked >= s.head {
		if s.hinted > s.acked {
			return nil, s.acked + 1, Unknown
		}
		return nil, 0, 0
	}
	from, to = s.acked+1, min(s.head, s.acked+ReadAhead)
	if s.cautious {
		to = from
	}
	if s.corrupt > from {
		to = min(to, s.corrupt-1)
	}
	if len(s.buffer.records) > 0 {
		first := s.buffer.records[0]
		if first.Number == from {
			return first, 0, 0
		}
		to = min(to, first.Number-1)
	}
	return nil, from, to
}

// Unknown is the end of a range of events if only a hint says that there are any.
const Unknown = ^uint64(0)

// ReadAhead is the maximum number of events of an aggregate in one read from the journal, if they
// fit the buffer. It is large enough to read the index at its lowest price, and smaller than a
// page.
const ReadAhead = 200
