package subscriber

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// stream is one aggregate's events on their way to the handler. Two numbers are
// its truth: head, the highest event known to exist, and acked. What lies
// between is delivered in order: from the buffer where the tail brought it, else read
// from the journal.
//
// The shard's mutex guards all fields but those of the position.
type stream struct {
	id    aggregate.ID
	shard *shard

	state   streamState
	claimed bool // acked is known
	acked   uint64
	head    uint64

	// hint is the highest event that the tail has shown, and hintAt its time in
	// milliseconds. The shard's cursor may pass hintAt only once the event is acked
	// or the stream is listed as behind: on a restart this event is what shows that
	// something is left to do.
	hint    uint64
	hintAt  int64
	pending time.Time // since when something is left to do; zero if nothing is
	listed  bool      // as behind: the cursor may pass it
	entry   bool      // there may be a row that says so

	// listing is held from before a write of that row until its result is noted.
	listing sync.Mutex

	// buffer holds events in order. What lacks before and between them is read from the journal
	// when its turn comes.
	buffer      []*journal.Record
	bufferBytes int
	trimmed     bool // nothing is added to the buffer until it is empty

	// inherited is what a former owner has listed, until it is taken over.
	inherited *checkpoint.Behind
	led       uint64 // the highest event that only the list led to
	swept     uint64 // the highest event that only a sweep has shown
	corrupt   uint64 // an event that could not be read, which is not read ahead; 0 for none
	timer     *time.Timer

	// Of the next event, so far; a lane alone uses them.
	deliveries int // of its message
	attempts   int // that failed, to make it a message or to handle it
	failures   int // to reach the store
	// resumed is the roster's count of resumptions as the shard knew it at the first failed
	// attempt.
	resumed uint64
	verdict *verdict // nil unless the event is given up, and that is not stored yet
	// cautious: the stream was put off, so only its next event is read: a handler that nacks for
	// ever must not have all that follows read again each time, nor a corrupt event withhold those
	// before it.
	cautious bool

	position position
}

type streamState int

const (
	idle    streamState = iota
	active              // queued for or in a lane
	delayed             // waits before it goes on: nacked, or a failed read
	parked              // waits until an operator lets it go on
)

// position is what is stored of a stream. Whoever writes it holds the lock from
// before the write until the result is noted, so the flusher and a handler's own
// transaction never compete.
type position struct {
	mu     lock
	stored atomic.Uint64 // written under mu
	doubt  bool          // a write of it failed and may have been done all the same

	handling atomic.Bool // a handler has mu
	together atomic.Bool // it is in a transaction for several events
	longest  int         // how many events a transaction may be for, since one for several failed; 0 for any number. Under mu
}

// offer takes a record that the tail showed, or just its number.
func (s *stream) offer(r *journal.Record, keep bool) {
	s.hear(r.Number)
	if r.Number > s.hint {
		s.hint, s.hintAt = r.Number, r.OccurredAt.UnixMilli()
	}
	if !keep || s.trimmed || (s.claimed && r.Number <= s.acked) {
		return
	}
	// Most come in order. But the tail has the events of one commit in any order, and a page of it
	// may end among them.
	at, found := s.find(r.Number)
	if found {
		return
	}
	size := r.Size()
	if len(s.buffer) == 0 { // there is room for one event of each
		s.shard.budget.take(size)
	} else if !s.shard.budget.tryTake(size) {
		s.trimmed = true
		return
	}
	s.buffer = slices.Insert(s.buffer, at, r)
	s.bufferBytes += size
}

// find returns the place of an event in the buffer, and whether it is there.
func (s *stream) find(number uint64) (at int, found bool) {
	return slices.BinarySearchFunc(s.buffer, number, func(r *journal.Record, number uint64) int { return cmp.Compare(r.Number, number) })
}

// hear notes that an event exists.
func (s *stream) hear(number uint64) {
	s.head = max(s.head, number)
}

// drained reports that nothing is left to do, as far as known.
func (s *stream) drained() bool { return s.claimed && s.acked >= s.head }

// next returns the event to deliver, or the range of events to read first, or neither.
func (s *stream) next() (r *journal.Record, from, to uint64) {
	for len(s.buffer) > 0 && s.buffer[0].Number <= s.acked {
		s.dropFirst()
	}
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
	if len(s.buffer) > 0 {
		if s.buffer[0].Number == from {
			return s.buffer[0], 0, 0
		}
		to = min(to, s.buffer[0].Number-1)
	}
	return nil, from, to
}

// readAhead is how many events of an aggregate are read from the journal at a time, if that much
// fits the buffer: enough to read the index at its best price, and less than a page.
const readAhead = 200

// fill puts events that were read from the journal, acked+1 and following, before the buffer.
func (s *stream) fill(records []*journal.Record) {
	last := records[len(records)-1].Number
	for len(s.buffer) > 0 && s.buffer[0].Number <= last {
		s.dropFirst() // the tail was faster
	}
	for _, r := range records {
		size := r.Size()
		s.bufferBytes += size
		s.shard.budget.take(size)
	}
	s.buffer = append(records, s.buffer...)
}

func (s *stream) dropFirst() {
	size := s.buffer[0].Size()
	s.buffer[0] = nil
	s.buffer = s.buffer[1:]
	if len(s.buffer) == 0 {
		s.buffer, s.trimmed = nil, false
	}
	s.bufferBytes -= size
	s.shard.budget.give(size)
}

// trim drops what is over a size, the last first, but for one event.
func (s *stream) trim(size int) {
	freed, keep := 0, len(s.buffer)
	for keep > 1 && s.bufferBytes-freed > size {
		keep--
		freed += s.buffer[keep].Size()
	}
	if freed == 0 {
		return
	}
	clear(s.buffer[keep:])
	s.buffer, s.trimmed = s.buffer[:keep], true
	s.bufferBytes -= freed
	s.shard.budget.give(freed)
}

// drop forgets what is buffered; it is read from the journal when its turn comes.
func (s *stream) drop() {
	s.shard.budget.give(s.bufferBytes)
	s.buffer, s.bufferBytes, s.trimmed = nil, 0, false
}
