package sequence

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// wakes are the reports of commits that come without a read of the tail: those of this process,
// which are true, and hints from outside, which are only a reason to read.
type wakes struct {
	// early contains the reports since the last read of the tail that did not reach its end. The
	// next read may have missed them.
	early map[aggregate.ID]wake
	// lost reports that a report was dropped since then.
	lost bool
	// poll requests a read of the tail instead of what could not be done for a report.
	poll chan struct{}

	// announced and announcedBefore contain the versions that were reported in the current period
	// and in the one before, by the hash of the aggregate, because ids may be long and many.
	// unannounced contains events that a read of the tail found first. A report may still follow.
	// All are empty while polling is not rare.
	announced, announcedBefore map[uint64]uint64
	period                     time.Time // when the current one began
	lastRead                   time.Time // of the tail
	unannounced                map[aggregate.ID]sighting
}

// wake is what was reported of an aggregate. committed is a version of this process, and hinted
// one of a hint. Either may be 0.
type wake struct{ committed, hinted uint64 }

// sighting is an event that a read of the tail found.
type sighting struct {
	number uint64
	at     time.Time
}

const (
	// maxEarly is the number of aggregates whose reports are kept during one read of the tail.
	maxEarly = 1000
	// maxAnnounced is the number of aggregates whose reports are remembered for a period. Both
	// periods take at most about 600 KB for each shard.
	maxAnnounced = 10_000
	// announcedFor is the length of a period, and unannouncedFor is the time that a report has
	// after its event was found.
	announcedFor   = 30 * time.Second
	unannouncedFor = 5 * time.Second
)

// Wake handles a commit in this process. While the live read is far behind the end of the tail, it
// will find the event later, at a lower cost. The read in progress may be the one that reaches the
// end, and be too early for this commit, so Enqueue decides.
// It returns false if the shard has ended, or if a limit is reached.
func (q *Sequencer[W]) Wake(id aggregate.ID, version uint64) bool {
	return q.report(id, wake{committed: version})
}

// Hint handles a report from outside, which may be wrong in any way. It never makes an event known.
// The worker of the aggregate reads what follows the events that are known. If that is not possible
// now, a read of the tail is requested instead. Hint returns false like Wake.
func (q *Sequencer[W]) Hint(id aggregate.ID, version uint64) bool {
	return q.report(id, wake{hinted: max(1, version)})
}

func (q *Sequencer[W]) report(id aggregate.ID, w wake) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	q.announce(id, max(w.committed, w.hinted))
	if q.caughtUp {
		return q.act(id, w)
	}
	earlier, kept := q.wakes.early[id]
	if !kept && len(q.wakes.early) >= maxEarly {
		q.wakes.lost = true
		return false
	}
	if q.wakes.early == nil {
		q.wakes.early = map[aggregate.ID]wake{}
	}
	q.wakes.early[id] = wake{max(earlier.committed, w.committed), max(earlier.hinted, w.hinted)}
	return true
}

// endRead acts on the reports that came during a read of the tail. If that has not reached the end,
// the next read shows their events. It returns those that were refused. The caller holds mu.
func (q *Sequencer[W]) endRead() (refused map[aggregate.ID]uint64) {
	early, lost := q.wakes.early, q.wakes.lost
	q.wakes.early, q.wakes.lost, q.wakes.lastRead = nil, false, q.now()
	if !q.caughtUp {
		return nil
	}
	refused = map[aggregate.ID]uint64{}
	for id, w := range early {
		if !q.act(id, w) {
			refused[id] = max(w.committed, w.hinted)
		}
	}
	if lost {
		q.requestPoll()
	}
	return refused
}

// act schedules an aggregate. It returns false if a limit is reached, or if the aggregate may have
// an entry on the behind list that was not read. The caller holds mu.
func (q *Sequencer[W]) act(id aggregate.ID, w wake) bool {
	if q.ended {
		return false
	}
	st := q.streams[id.Value]
	if version := max(w.committed, w.hinted); version == 0 || st != nil && version <= st.head && !st.unreported {
		return true
	}
	if st == nil && q.unread != nil && q.unread(id) {
		return false
	}
	if q.Memory.isFull(q.unparked()) || q.budget.isFull() {
		q.requestPoll()
		return false
	}
	if w.committed > 0 {
		st = q.stream(id)
		st.observe(w.committed)
		q.sampled(st, w.committed)
	}
	if w.hinted > w.committed {
		if st != nil && (st.state == parked || st.claimed && w.hinted <= st.acked) {
			return true
		}
		if !q.Hints.Allow() {
			q.requestPoll()
			return false
		}
		st = q.stream(id)
		st.hinted = max(st.hinted, w.hinted)
	}
	if st.unreported {
		st.unreported = false
		if !q.waits(st) {
			q.setState(st, idle)
		}
	}
	q.schedule(st, false)
	return true
}

// TakeHint returns the version of a hint, and forgets it. A hint that comes later may be about a
// commit that the following read does not see.
func (q *Sequencer[W]) TakeHint(st *Stream[W]) (version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	version, st.hinted = st.hinted, 0
	return version
}

// KnownByHint reports whether only a hint says that a stream has events.
func (q *Sequencer[W]) KnownByHint(st *Stream[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !st.claimed && st.head == 0
}

// Dismiss removes a stream that is known only by a hint, because its worker cannot prepare it, and
// requests a read of the tail instead. It returns false if the stream has known events.
func (q *Sequencer[W]) Dismiss(st *Stream[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if st.head > 0 || st.inherited != nil {
		return false
	}
	st.hinted = 0
	q.idle(st)
	delete(q.streams, st.ID.Value)
	q.requestPoll()
	return true
}

// Followed adds what was read because of a hint. found is the last event that the read has shown.
// If that is before the version of the hint, the rest is read later if the read was cut short,
// because more did not fit. Otherwise the hint is wrong, or the read has failed, and a read of the
// tail is requested. It finds what is there.
func (q *Sequencer[W]) Followed(st *Stream[W], records []*journaltype.Record, found, hinted uint64, cut bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(records) > 0 {
		st.observe(found)
		st.buffer.fill(records, q.budget)
	}
	switch {
	case found >= hinted:
	case cut:
		st.hinted = max(st.hinted, hinted)
	default:
		q.requestPoll()
	}
}

// WantsPoll receives a value when the tail must be read soon.
func (q *Sequencer[W]) WantsPoll() <-chan struct{} { return q.wakes.poll }

func (q *Sequencer[W]) requestPoll() {
	select {
	case q.wakes.poll <- struct{}{}:
	default:
	}
}

// announce records that an aggregate was reported. The caller holds mu, as those of the functions
// below.
func (q *Sequencer[W]) announce(id aggregate.ID, version uint64) {
	if !q.Rare() {
		return
	}
	w := &q.wakes
	if f, waits := w.unannounced[id]; waits && f.number <= version {
		delete(w.unannounced, id)
	}
	w.rotate(q.now())
	if hash := hashOf(id); len(w.announced) < maxAnnounced {
		w.announced[hash] = max(w.announced[hash], version)
	}
}

// rotate begins another period if the current one has ended.
func (w *wakes) rotate(now time.Time) {
	switch since := now.Sub(w.period); {
	case since > 2*announcedFor:
		w.announcedBefore, w.announced, w.period = nil, map[uint64]uint64{}, now
	case since > announcedFor:
		w.announcedBefore, w.announced, w.period = w.announced, map[uint64]uint64{}, now
	}
}

// noteFound records an event that a read of the tail has shown. After an outage the reports of
// events may be forgotten, so the first read after it does not count.
func (q *Sequencer[W]) noteFound(st *Stream[W], number uint64) {
	w := &q.wakes
	if !q.caughtUp || number <= st.head || st.claimed && number <= st.acked || !q.Rare() {
		return
	}
	now := q.now()
	if w.rotate(now); now.Sub(w.lastRead) > announcedFor {
		return
	}
	hash := hashOf(st.ID)
	if max(len(w.announced), len(w.announcedBefore)) >= maxAnnounced || max(w.announced[hash], w.announcedBefore[hash]) >= number || len(w.unannounced) >= maxEarly {
		return
	}
	if w.unannounced == nil {
		w.unannounced = map[aggregate.ID]sighting{}
	}
	if _, waits := w.unannounced[st.ID]; !waits {
		w.unannounced[st.ID] = sighting{number, now}
	}
}

// TakeUnannounced returns the number of aggregates of which a read of the tail has found an event
// that no report has announced within a few seconds.
func (q *Sequencer[W]) TakeUnannounced() (count uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &q.wakes
	if !q.Rare() {
		w.announced, w.announcedBefore, w.unannounced = map[uint64]uint64{}, nil, nil
		return 0
	}
	w.rotate(q.now())
	for id, f := range w.unannounced {
		if q.now().Sub(f.at) >= unannouncedFor {
			delete(w.unannounced, id)
			count++
		}
	}
	return count
}
