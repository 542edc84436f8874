package subscriber

import (
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// sequencer knows which events of a shard exist, which are handled, and what of that is stored. It
// decides what comes next for each aggregate, and how far the cursor may go. It makes no requests,
// and nothing but awaitHealth blocks. Its mutex guards the streams.
type sequencer struct {
	limits
	budget *budget
	stats  *counters
	now    func() time.Time // monotonic
	// ready has a worker serve a stream. It is called with the mutex held.
	ready func(st *stream, failed bool)

	mu      sync.Mutex
	ended   bool
	streams map[string]*stream // by id value
	// unfinished and dirty are the streams that a flush has to look at: with events left to do, and
	// with a position that is not stored yet.
	unfinished   map[*stream]struct{}
	dirty        map[*stream]struct{}
	failing      int               // streams that were put off and have delivered nothing since
	waiting      []*stream         // until fewer are dirty
	changed      chan struct{}     // closed when fewer are failing; nil while nobody waits
	final        int64             // up to where the tail is final, in milliseconds
	caughtUp     bool              // the live read has reached the end of the tail
	forgotten    *forgotten        // nil while no stream was
	handled      map[string]uint64 // positions of forgotten streams of a broadcast, by id value
	reconciledAt time.Time         // when heads and positions were compared
	saved        savedCursor
	rewinds      uint64    // how often the cursor turned back
	unverified   []*stream // parked under an earlier epoch; the position is still to be compared
}

// savedCursor is what is stored of a shard's cursor.
type savedCursor struct {
	at           int64
	reconciledAt time.Time
}

// limits are the settings that the sequencer goes by.
type limits struct {
	// broadcast: no position is stored, so those of forgotten streams are remembered.
	broadcast                            bool
	idleStreams, maxUnstored, maxFailing int
	maxUnfinished                        int // from which on reconciliations wait
	behindAfter                          time.Duration
}

func newSequencer(l limits, b *budget, stats *counters, ready func(*stream, bool)) *sequencer {
	return &sequencer{
		limits: l, budget: b, stats: stats, ready: ready, now: time.Now,
		streams: map[string]*stream{}, unfinished: map[*stream]struct{}{}, dirty: map[*stream]struct{}{},
		handled: map[string]uint64{},
	}
}

// claimed notes where the group is with a stream.
func (q *sequencer) claimed(st *stream, position uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.claimed, st.acked = true, position
	st.forgetFailure()
	q.stats.duplicates.Add(st.buffer.dropTo(position, q.budget))
}

// tookOver notes how far an aggregate goes that was listed. The caller has claimed its position.
func (q *sequencer) tookOver(st *stream, head uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.observe(head)
	// No cursor leads back to these events. The entry does, but a former owner may remove it, even
	// late, once it has handled the events that it knew of.
	st.led = st.head
	if st.listed <= st.acked {
		st.listed = 0
	}
	st.inherited = nil
}

// next is stream.next, or notes that there is nothing to do.
func (q *sequencer) next(st *stream) (r *journal.Record, from, to uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.buffer.dropTo(st.acked, q.budget)
	if r, from, to = st.next(); r == nil && to == 0 {
		q.idle(st)
	}
	return r, from, to
}

// beginServing notes that a worker serves a stream. That ends when the stream is idle, put off,
// resumed or parked, or with endServing: at once, since another worker may serve it then.
func (q *sequencer) beginServing(st *stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.serving = q.now()
}

// endServing notes that a stream is to wait for a worker again.
func (q *sequencer) endServing(st *stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.serving = time.Time{}
}

func (q *sequencer) fill(st *stream, records []*journal.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.buffer.fill(records, q.budget)
}

// following returns the events in the buffer that follow one without a gap, up to a number of them.
func (q *sequencer) following(st *stream, number uint64, most int) []*journal.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.buffer.after(number, most)
}

// pass acks all events up to a number and returns how many.
func (q *sequencer) pass(st *stream, number uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	passed := number - min(number, st.acked)
	st.observe(number)
	q.acked(st, number)
	return passed
}

// ack notes that all events up to a number are handled.
func (q *sequencer) ack(st *stream, number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acked(st, number)
}

// acked is ack. The caller holds mu, as in what follows.
func (q *sequencer) acked(st *stream, number uint64) {
	st.acked = max(st.acked, number)
	st.forgetFailure()
	q.recover(st)
	if !st.serving.IsZero() {
		st.serving = q.now()
	}
	if st.corrupt <= st.acked {
		st.corrupt = 0
	}
	if st.position.stored.Load() < st.acked {
		q.dirty[st] = struct{}{}
	}
}

// stream finds or makes a stream.
func (q *sequencer) stream(id aggregate.ID) *stream {
	st := q.streams[id.Value]
	if st == nil {
		st = &stream{id: id}
		q.streams[id.Value] = st
	}
	return st
}

// schedule brings a stream with something to do to the workers, with those that failed if it can
// wait.
func (q *sequencer) schedule(st *stream, canWait bool) {
	if st.drained() {
		return
	}
	q.unfinished[st] = struct{}{}
	if st.pending.IsZero() {
		st.pending = q.now()
	}
	if st.state == idle {
		st.state = active
		q.ready(st, canWait)
	}
}

// idle notes that a stream has nothing left to do for now.
func (q *sequencer) idle(st *stream) {
	st.state, st.serving = idle, time.Time{}
	st.buffer.drop(q.budget)
	q.recover(st)
	if !st.entry {
		delete(q.unfinished, st)
	}
	st.pending = time.Time{}
}

// putOff has a stream wait, until resume. Any number of streams may: so they hold no events, and
// only the next one is read when they go on. Otherwise each nack would have all later events read
// again, and a corrupt event would hold back those before it.
func (q *sequencer) putOff(st *stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.state, st.serving = delayed, time.Time{}
	st.buffer.drop(q.budget)
	if !st.cautious {
		st.cautious = true
		q.failing++
	}
}

// recover notes that a stream that was put off has delivered.
func (q *sequencer) recover(st *stream) {
	if st.cautious {
		st.cautious = false
		q.failing--
		q.notify()
	}
}

// noteFailure notes the last failed attempt at the next event of a stream.
func (q *sequencer) noteFailure(st *stream, f checkpoint.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.failure = &f
}

// resume brings a stream back to the workers that was put off, or is being served.
func (q *sequencer) resume(st *stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.state, st.serving = active, time.Time{}
	q.ready(st, true)
}

// park lets a stream rest that was listed as parked.
func (q *sequencer) park(st *stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.state, st.serving, st.listed = parked, time.Time{}, always
	st.failure = nil // the entry has it
	st.buffer.drop(q.budget)
	q.recover(st)
}

// beforeCorrupt notes the place of a corrupt event, or that it is not known, and reports whether
// there may be others before it. They are not to wait for it, nor to count as failed.
func (q *sequencer) beforeCorrupt(st *stream, number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if number > st.acked+1 {
		st.corrupt = number
		return true
	}
	return number == 0 && !st.cautious
}

// ackedOf returns the last event of a stream that is handled.
func (q *sequencer) ackedOf(st *stream) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.acked
}

func (q *sequencer) reconciledOf(st *stream) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return st.reconciled
}

// forget drops streams that have nothing to do, once there are many.
func (q *sequencer) forget() {
	if len(q.streams) <= q.idleStreams {
		return
	}
	for value, st := range q.streams {
		_, dirty := q.dirty[st]
		_, unfinished := q.unfinished[st]
		if st.state == idle && !dirty && !unfinished {
			delete(q.streams, value)
			if q.broadcast {
				q.handled[value] = st.acked
				continue
			}
			if q.forgotten == nil {
				q.forgotten = newForgotten()
			}
			q.forgotten.add(st.id)
			if len(q.streams) <= q.idleStreams {
				return
			}
		}
	}
}

// hasForgotten reports that a stream may have been known before, in this term, under its id.
func (q *sequencer) hasForgotten(id aggregate.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.forgotten.has(id)
}

// positionOf returns the position of a stream that a broadcast has forgotten.
func (q *sequencer) positionOf(id aggregate.ID) (position uint64, forgotten bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	position, forgotten = q.handled[id.Value]
	return position, forgotten
}

// end lets nothing more begin.
func (q *sequencer) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
}

// all returns the streams.
func (q *sequencer) all() []*stream {
	q.mu.Lock()
	defer q.mu.Unlock()
	streams := make([]*stream, 0, len(q.streams))
	for _, st := range q.streams {
		streams = append(streams, st)
	}
	return streams
}

// forgetAll releases what the streams hold, once the shard has come to rest.
func (q *sequencer) forgetAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, st := range q.streams {
		st.buffer.drop(q.budget)
	}
	clear(q.streams)
}
