package subscriber

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// stream is one aggregate's events on their way to the handler. Two numbers define it: head, the
// highest event known to exist, and acked. What lies between is delivered in order: from the
// buffer where the tail brought it, else read from the journal.
type stream struct {
	id aggregate.ID

	// The sequencer's mutex guards what follows.

	state   streamState
	claimed bool // acked is known
	acked   uint64
	head    uint64
	buffer  buffer

	// hint is the highest event that a read of the tail, a reconciliation or a corrupt item has shown, and
	// hintAt its time in milliseconds, or that up to which the tail was final. The shard's cursor
	// may pass hintAt only once the event is acked and stored or the stream is listed as behind: on
	// a restart this event is what shows that something is left to do.
	hint     uint64
	hintAt   int64
	pending  time.Time // since when something is left to do; zero if nothing is
	serving  time.Time // since when a worker serves it; zero if none does
	cautious bool      // it was put off, so that only its next event is read: see putOff
	corrupt  uint64    // an event that could not be read, which is not read ahead; 0 for none
	// failure is the last failed attempt at the next event, for the entry of the list; nil for none.
	failure *checkpoint.Failure

	// listed is up to which event the list of those behind leads to the stream; 0 if it does not.
	listed uint64
	entry  bool // there may be an entry of the list
	// inherited is what a former owner has listed, until it is taken over.
	inherited  *checkpoint.Behind
	led        uint64 // the highest event that only the list led to
	reconciled uint64 // the highest event that only a reconciliation has shown

	// What follows the mutex does not guard.

	delivery delivery // the deliverer's
	position position // the committer's
	// listing is the committer's, from before a write of the entry until its result is noted.
	listing sync.Mutex
}

type streamState int

const (
	idle    streamState = iota
	active              // queued for or served by a worker
	delayed             // waits before it goes on: nacked, or a failed read
	parked              // waits until an operator lets it go on
)

// always, as what a list leads to: every event, also one that is still to come.
const always = ^uint64(0)

// hear notes that an event exists.
func (s *stream) observe(number uint64) { s.head = max(s.head, number) }

// show notes that the tail has shown an event.
func (s *stream) observeTail(r *journal.Record) {
	s.observe(r.Number)
	if r.Number > s.hint || r.Number == s.reconciled {
		s.hint, s.hintAt = r.Number, r.WrittenAt.UnixMilli()
	}
	if r.Number >= s.reconciled {
		s.reconciled = 0
	}
}

// find notes that a reconciliation has found an event. Where the tail has shown one that is left to do, the
// cursor has to lead to that.
func (s *stream) observeReconciled(r *journal.Record) {
	s.observe(r.Number)
	stored := s.position.stored.Load()
	if r.Number <= max(s.hint, stored) { // a commit of this process may have shown it, without a trace
		return
	}
	s.reconciled = r.Number
	if s.hint <= stored {
		s.hint, s.hintAt = r.Number, r.WrittenAt.UnixMilli()
	}
}

// drained reports that nothing is left to do, as far as known.
func (s *stream) drained() bool { return s.claimed && s.acked >= s.head }

// forgetFailure drops the failure if its event is handled by now.
func (s *stream) forgetFailure() {
	if s.failure != nil && s.failure.Number <= s.acked {
		s.failure = nil
	}
}

// covered reports that the list leads to all that is left to do.
func (s *stream) covered() bool { return s.listed >= s.head && s.listed > 0 }

// stuck reports that a stream does not wait for its turn alone: it failed, or its handler takes
// long.
func (s *stream) stuck(now time.Time, long time.Duration) bool {
	return s.cautious || !s.serving.IsZero() && now.Sub(s.serving) > long
}

// next returns the event to deliver, or the range of events to read first, or neither.
func (s *stream) next() (r *journal.Record, from, to uint64) {
	if s.acked >= s.head {
		return nil, 0, 0
	}
	from, to = s.acked+1, min(s.head, s.acked+readAhead)
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

// readAhead is how many events of an aggregate are read from the journal at a time, if that much
// fits the buffer: enough to read the index at its best price, and less than a page.
const readAhead = 200
