// Package sequence decides which event of a shard comes next, and how far its cursor may move. It
// makes no requests.
package sequence

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Sequencer knows which events of a shard exist, which are handled, and which positions are stored.
// It decides what is next for each aggregate, and how far the cursor may move. It makes no
// requests, and only AwaitHealth blocks. Its mutex guards the streams.
type Sequencer[W any] struct {
	Limits
	budget     *Budget
	duplicates *atomic.Uint64   // counts events that were found again
	now        func() time.Time // monotonic
	clock      func() time.Time // the clock that dates events
	// ready queues a stream for a worker. It is called with the mutex held.
	ready func(st *Stream[W], failed bool)

	mu      sync.Mutex
	ended   bool
	streams map[string]*Stream[W] // by id value
	// unfinished contains the streams with unhandled events, or with an entry on the behind list.
	// dirty contains the streams whose position is not stored yet. A flush visits both.
	unfinished map[*Stream[W]]struct{}
	dirty      map[*Stream[W]]struct{}
	// parked counts the unfinished streams that are parked.
	parked int
	// failing counts the streams that have failed and have delivered nothing since.
	failing int
	// waiting contains streams that wait until fewer are dirty. full requests a flush for them.
	waiting []*Stream[W]
	full    chan struct{}
	// changed is closed when fewer streams are failing. It is nil while no caller waits.
	changed chan struct{}
	// final is the time up to which all trailing reads have read the tail, in milliseconds. Only a
	// reconciliation can still find earlier events.
	final int64
	// caughtUp reports that the live read has reached the end of the tail.
	caughtUp bool
	wakes    wakes
	settling settling
	// forgotten is nil while no stream was forgotten.
	forgotten *forgotten
	// handled contains the positions of forgotten streams of a broadcast, by id value.
	handled map[string]uint64
	// reconciledAt is the time of the last reconciliation.
	reconciledAt time.Time
	saved        Cursor
	// rewinds counts how often the cursor was moved back.
	rewinds uint64
	// sample is a commit that the tail must show. It measures the lag.
	sample sample[W]
	// unverified contains streams that were parked under an earlier epoch and whose position must
	// still be compared.
	unverified []*Stream[W]
	// paced contains listed streams until TakePaced returns them.
	paced []*Stream[W]
	// unread reports whether an aggregate may have an entry on the behind list that was not read.
	// It is nil if the whole list was read.
	unread func(aggregate.ID) bool
}

// Cursor is the stored cursor of a shard and the stored time of its last reconciliation.
type Cursor struct {
	At           int64
	ReconciledAt time.Time
}

// Limits contains settings of the sequencer.
type Limits struct {
	// Broadcast reports that no position is stored, so the sequencer keeps the positions of
	// forgotten streams.
	Broadcast bool
	// The following are also limited by the shard's share of memory. Reconciliations wait while
	// MaxUnfinished or more streams are unfinished.
	IdleStreams, MaxUnstored, MaxUnfinished int
	Memory                                  *Memory
	BehindAfter                             time.Duration
	// Began is the time at which a visit began. Listed streams whose next attempt is due later are
	// delayed for the whole visit. It is zero for an owner that runs for long, which may have come
	// with a correction, so it tries all of them at once.
	Began time.Time
	// ReportedOnly says that a visit handles only aggregates that are reported. It leaves the other
	// listed ones to sweeps.
	ReportedOnly bool
	// PacedAfter is the number of failed attempts up to which a visit tries a listed stream at
	// once. Other streams wait, see TakePaced. Those that still wait at the end of the visit are
	// due after PacedFor.
	PacedAfter int
	PacedFor   time.Duration
	// Hints limits the reads because of hints from outside. Rare reports whether the tail is polled
	// rarely because of them.
	Hints *rate.Limiter
	Rare  func() bool
}

// New returns a sequencer that knows no stream. It counts in duplicates the events that were found
// again, and calls ready to queue a stream for a worker, with its mutex held.
func New[W any](l Limits, b *Budget, duplicates *atomic.Uint64, clock func() time.Time, ready func(*Stream[W], bool)) *Sequencer[W] {
	return &Sequencer[W]{
		Limits: l, budget: b, duplicates: duplicates, ready: ready, now: time.Now, clock: clock,
		streams: map[string]*Stream[W]{}, unfinished: map[*Stream[W]]struct{}{}, dirty: map[*Stream[W]]struct{}{},
		handled: map[string]uint64{}, full: make(chan struct{}, 1), settling: settling{settles: make(chan struct{}, 1)}, wakes: wakes{poll: make(chan struct{}, 1), announced: map[uint64]uint64{}},
	}
}

// Claimed records the group's position on the aggregate of a stream.
func (q *Sequencer[W]) Claimed(st *Stream[W], position uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.claimed, st.acked = true, position
	st.forgetFailure()
	q.duplicates.Add(st.buffer.dropTo(position, q.budget))
}

// TookOver records the last event of an aggregate that a former owner has listed. The caller has
// claimed its position.
func (q *Sequencer[W]) TookOver(st *Stream[W], head uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.observe(head)
	// A restart would not find these events by the cursor. It would find them by the entry, but a
	// former owner may delete that, even late, once it has handled the events that it knew.
	st.led = st.head
	if st.listed <= st.acked {
		st.listed = 0
	}
	st.inherited = nil
}

// Next returns the result of stream.next. An event that it returns no longer counts in the budget.
// If there is nothing to do, it marks the stream as idle.
func (q *Sequencer[W]) Next(st *Stream[W]) (r *journaltype.Record, from, to uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.buffer.dropTo(st.acked, q.budget)
	switch r, from, to = st.next(); {
	case r != nil:
		st.buffer.lend(q.budget)
	case to == 0:
		q.idle(st)
	}
	return r, from, to
}

// BeginServing records that a worker serves a stream. The record is removed when the stream becomes
// idle, is put off, resumed or parked, or by EndServing. It must be removed at once, because
// another worker can then serve the stream.
func (q *Sequencer[W]) BeginServing(st *Stream[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.serving = q.now()
}

// EndServing records that a stream waits for a worker again.
func (q *Sequencer[W]) EndServing(st *Stream[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.serving = time.Time{}
}

// Fill adds events that were read from the journal.
func (q *Sequencer[W]) Fill(st *Stream[W], records []*journaltype.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.buffer.fill(records, q.budget)
}

// Following returns the events in the buffer that follow an event without a gap, at most a number
// of them.
func (q *Sequencer[W]) Following(st *Stream[W], number uint64, most int) []*journaltype.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.buffer.after(number, most)
}

// Pass acks all events up to a number, and returns how many it has acked.
func (q *Sequencer[W]) Pass(st *Stream[W], number uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	passed := number - min(number, st.acked)
	st.observe(number)
	q.acked(st, number)
	return passed
}

// Ack records that all events up to a number are handled. It reports whether the stream had failed
// before.
func (q *Sequencer[W]) Ack(st *Stream[W], number uint64) (recovered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	recovered = st.cautious || st.paced
	st.paced = false
	q.acked(st, number)
	return recovered
}

// acked is Ack for a caller that holds mu. Callers of the other unexported methods hold it too.
func (q *Sequencer[W]) acked(st *Stream[W], number uint64) {
	st.acked = max(st.acked, number)
	st.forgetFailure()
	q.recover(st)
	if !st.serving.IsZero() {
		st.serving = q.now()
	}
	if st.corrupt <= st.acked {
		st.corrupt = 0
	}
	if st.Stored.Load() < st.acked {
		q.dirty[st] = struct{}{}
	}
}

// stream returns the stream of an aggregate, and creates it if it does not exist.
func (q *Sequencer[W]) stream(id aggregate.ID) *Stream[W] {
	st := q.streams[id.Value]
	if st == nil {
		st = &Stream[W]{ID: id}
		q.streams[id.Value] = st
	}
	return st
}

// schedule queues a stream that has something to do for a worker. If it can wait, it is queued with
// the streams that failed.
func (q *Sequencer[W]) schedule(st *Stream[W], canWait bool) {
	if st.drained() {
		return
	}
	q.unfinished[st] = struct{}{}
	if st.pending.IsZero() {
		st.pending = q.now()
	}
	if st.state == idle {
		q.setState(st, active)
		q.ready(st, canWait)
	}
}

// idle records that a stream has nothing to do for now.
func (q *Sequencer[W]) idle(st *Stream[W]) {
	q.setState(st, idle)
	st.buffer.drop(q.budget)
	q.recover(st)
	if !st.entry {
		delete(q.unfinished, st)
	}
	st.pending = time.Time{}
}

// PutOff makes a stream wait until Resume. Any number of streams may wait, so they hold no events
// in memory, and after Resume only the next event is read. Otherwise each nack would cause all
// later events to be read again, and a corrupt event would hold back the events before it. soon
// says that a visit waits for Resume.
func (q *Sequencer[W]) PutOff(st *Stream[W], soon bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	until := delayed
	if soon {
		until = pausing
	}
	q.setState(st, until)
	st.buffer.drop(q.budget)
	if !st.cautious {
		st.cautious = true
		q.failing++
		q.Memory.fails(1)
	}
}

// recover records that a stream that was put off has delivered an event.
func (q *Sequencer[W]) recover(st *Stream[W]) {
	if st.cautious {
		st.cautious = false
		q.failing--
		q.Memory.fails(-1)
		q.notify()
	}
}

// Resume returns a stream to the workers that was put off or is being served.
func (q *Sequencer[W]) Resume(st *Stream[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setState(st, active)
	q.ready(st, true)
}

// Park stops the delivery of a stream that was listed as parked.
func (q *Sequencer[W]) Park(st *Stream[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setState(st, parked)
	st.listed = always
	q.parked++
	st.failure = nil // it is stored in the entry
	st.buffer.drop(q.budget)
	q.recover(st)
}

// BeforeCorrupt records the number of a corrupt event, or 0 if it is not known, and reports whether
// there may be readable events before it. These must not wait for the corrupt event or count as
// failed.
func (q *Sequencer[W]) BeforeCorrupt(st *Stream[W], number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if number > st.acked+1 {
		st.corrupt = number
		return true
	}
	return number == 0 && !st.cautious
}

// AckedOf returns the last handled event of a stream.
func (q *Sequencer[W]) AckedOf(st *Stream[W]) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.acked
}

// OnlyReconciled reports whether only a reconciliation has shown an event.
func (q *Sequencer[W]) OnlyReconciled(st *Stream[W], number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.led < number && number <= st.reconciled
}

// forget drops idle streams when there are too many streams.
func (q *Sequencer[W]) forget() {
	most := q.Memory.share(1, q.IdleStreams)
	if len(q.streams) <= most {
		return
	}
	for value, st := range q.streams {
		_, dirty := q.dirty[st]
		_, unfinished := q.unfinished[st]
		if st.state == idle && !dirty && !unfinished {
			delete(q.streams, value)
			// A hint may be about an aggregate that does not exist.
			if q.Broadcast {
				if st.acked > 0 {
					q.handled[value] = st.acked
				}
				continue
			}
			if max(st.acked, st.head) > 0 {
				if q.forgotten == nil {
					q.forgotten = &forgotten{}
				}
				q.forgotten.add(st.ID)
			}
			if len(q.streams) <= most {
				return
			}
		}
	}
}

// HasForgotten reports whether a stream may have been forgotten in this term.
func (q *Sequencer[W]) HasForgotten(id aggregate.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.forgotten.has(id)
}

// PositionOf returns the position of a stream that a broadcast has forgotten.
func (q *Sequencer[W]) PositionOf(id aggregate.ID) (position uint64, forgotten bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	position, forgotten = q.handled[id.Value]
	return position, forgotten
}

// End prevents new work.
func (q *Sequencer[W]) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
}

// All returns the streams.
func (q *Sequencer[W]) All() []*Stream[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	streams := make([]*Stream[W], 0, len(q.streams))
	for _, st := range q.streams {
		streams = append(streams, st)
	}
	return streams
}
