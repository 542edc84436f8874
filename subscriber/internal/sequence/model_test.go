package sequence

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// former is an owner that has lost the shard and does not know it.
type former struct {
	epoch       uint64
	acked, head map[string]uint64
}

// happening is an event of the model.
type happening struct {
	at        int64 // its date
	committed int64 // when it was written, which is later for one that is imported
	// astray reports that perhaps no read of the tail shows the event before the cursor passes it.
	// Then only a reconciliation leads to it.
	astray bool
}

// hand is an event that a handler is handling.
type hand struct {
	st     *stream
	number uint64
}

// model is a shard of a journal, the stored state of a group's work on it, and a sequencer whose
// owner may crash at any moment. Its clock counts milliseconds.
type model struct {
	t      *testing.T
	random *rand.Rand
	q      *sequencer
	epoch  uint64 // the epoch of the shard
	owner  uint64 // the epoch of the sequencer
	astray bool   // there are imports and wrong clocks, and so reconciliations

	ids    []string
	events map[string][]happening
	now    int64

	// handled by all owners together
	handled     map[string]uint64
	stored      map[string]uint64
	stamped     map[string]uint64 // the epoch of the position
	promised    map[string]uint64 // stored by the owner of that time
	former      *former
	entries     map[string]storage.Behind
	cursor      int64
	reconciled  int64 // the stored time; below 0 if none is stored
	shown       int64 // the place of the live read
	turned      bool  // the stored cursor may go back
	reconciling *reconciliationOf
	queued      []*stream
	hands       []hand
	delayed     []*stream
	delivered   int
}

// reconciliationOf is a reconciliation in progress.
type reconciliationOf struct {
	began   int64
	rewinds uint64
	left    []string
}

// Durations in milliseconds of the model.
const (
	modelBehindAfter    = 6
	modelReconcileEvery = 60 // time between two reconciliations
	modelAhead          = 20 // minimum error of a wrong clock
)

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), ids: []string{"a", "b", "c", "d", "e", "f"}, now: 1_000, reconciled: -1,
		astray: seed%2 == 1, events: map[string][]happening{}, handled: map[string]uint64{}, stored: map[string]uint64{}, entries: map[string]storage.Behind{},
		stamped: map[string]uint64{}, promised: map[string]uint64{},
	}
	m.restart()
	return m
}

func (m *model) id() string { return m.ids[m.random.IntN(len(m.ids))] }

// restart lets another owner take over, which knows only the stored state.
func (m *model) restart() {
	if m.q != nil {
		m.former = &former{epoch: m.owner, acked: map[string]uint64{}, head: map[string]uint64{}}
		for id, st := range m.q.streams {
			if st.claimed && st.inherited == nil {
				m.former.acked[id], m.former.head[id] = st.acked, st.head
			}
		}
	}
	m.epoch++
	m.owner = m.epoch
	m.queued, m.hands, m.delayed, m.reconciling = nil, nil, nil, nil
	m.q = testSequencer()
	m.q.now = func() time.Time { return time.UnixMilli(m.now) }
	m.q.BehindAfter = modelBehindAfter * time.Millisecond
	m.q.ready = func(st *stream, _ bool) {
		require.NotContains(m.t, m.queued, st, "it waits already")
		m.queued = append(m.queued, st)
	}
	var behind []storage.Behind
	for _, id := range m.ids {
		if b, is := m.entries[id]; is {
			behind = append(behind, b)
		}
	}
	saved, reconciled := Cursor{At: m.cursor}, time.UnixMilli(m.now)
	if m.reconciled >= 0 {
		saved.ReconciledAt, reconciled = time.UnixMilli(m.reconciled), time.UnixMilli(m.reconciled)
	}
	m.q.Begin(saved, reconciled, behind)
	if m.shown = m.cursor; m.shown > m.now {
		m.turnBack()
	}
}

// poll is a live read up to a time. It leaves out some events, which trailing reads find.
func (m *model) poll(everything bool) {
	if m.shown > m.now {
		m.turnBack()
	}
	until := m.now
	var records []*journaltype.Record
	for _, id := range m.ids {
		for n, e := range m.events[id] {
			if e.at >= m.shown && e.at < until && (everything || m.random.IntN(4) > 0) {
				records = append(records, testRecord(id, uint64(n+1), e.at))
			}
		}
	}
	m.random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	half := m.random.IntN(len(records) + 1)
	var read, unread []*journaltype.Record
	for _, r := range records[:half] {
		if m.q.Needs(r.Aggregate, r.Number, r.Number) && m.random.IntN(8) > 0 {
			read = append(read, r)
		} else {
			unread = append(unread, r)
		}
	}
	m.q.Enqueue(read, true, m.shown, unread...)
	m.q.ObserveTail(records[half:], m.shown)
	if everything {
		m.q.ObserveTail(nil, until)
		m.shown = until
	}
}

// serve lets a worker deliver some events of a stream.
func (m *model) serve(rewinds int) {
	if len(m.queued) == 0 {
		return
	}
	st := m.queued[0]
	m.queued = m.queued[1:]
	m.q.BeginServing(st)
	id := st.ID.Value
	if m.q.KnownByHint(st) && m.random.IntN(4) == 0 && m.q.Dismiss(st) {
		return
	}
	if !st.claimed {
		m.q.Claimed(st, m.stored[id])
		st.Stored.Store(m.stored[id])
	}
	if st.inherited != nil {
		switch m.random.IntN(4) {
		case 0: // its end cannot be read
			m.q.PutOff(st, false)
			m.delayed = append(m.delayed, st)
			return
		case 1: // a flush happens before its end is known
			m.flush(true)
		}
		m.q.TookOver(st, uint64(len(m.events[id])))
	}
	m.deliver(st, rewinds)
}

// deliver delivers some events of a stream that is served.
func (m *model) deliver(st *stream, rewinds int) {
	id := st.ID.Value
	for range rewinds {
		r, from, to := m.q.Next(st)
		switch {
		case r == nil && to == 0:
			return
		case to == Unknown:
			m.follow(st, from)
			continue
		case r == nil:
			require.LessOrEqual(m.t, to, uint64(len(m.events[id])), "read what is there")
			var records []*journaltype.Record
			for n := from; n <= to; n++ {
				records = append(records, testRecord(id, n, m.events[id][n-1].at))
			}
			m.q.Fill(st, records)
			continue
		}
		require.LessOrEqual(m.t, r.Number, m.handled[id]+1, "%s: without a gap", id)
		require.Greater(m.t, r.Number, m.promised[id], "%s: never again once it is stored", id)
		if m.random.IntN(8) == 0 {
			m.hands = append(m.hands, hand{st, r.Number})
			return
		}
		if !m.handle(st, r.Number) {
			return
		}
	}
	m.q.EndServing(st)
	m.q.ready(st, false)
}

// handle is the handler. It acks an event and returns true, or fails and returns false.
func (m *model) handle(st *stream, number uint64) bool {
	if m.random.IntN(6) == 0 {
		switch stored := st.Stored.Load(); {
		case m.random.IntN(3) > 0:
			m.q.NoteFailure(st, storage.Failure{Number: number})
			m.q.PutOff(st, false)
			m.delayed = append(m.delayed, st)
		case stored >= number: // a former owner has handled it
			m.q.Ack(st, stored)
			m.q.Resume(st)
		default:
			m.park(st, number)
		}
		return false
	}
	m.delivered++
	m.handled[st.ID.Value] = max(m.handled[st.ID.Value], number)
	m.q.Ack(st, number)
	return true
}

// goOn lets a slow handler answer, or a failed stream be retried.
func (m *model) goOn() {
	if n := len(m.hands); n > 0 {
		h := m.hands[n-1]
		m.hands = m.hands[:n-1]
		if m.handle(h.st, h.number) {
			m.deliver(h.st, 1+m.random.IntN(4))
		}
	}
	if n := len(m.delayed); n > 0 {
		st := m.delayed[n-1]
		m.delayed = m.delayed[:n-1]
		m.q.Resume(st)
	}
}

func (m *model) park(st *stream, number uint64) {
	head := m.q.ExpectEntry(st)
	m.entries[st.ID.Value] = storage.Behind{Aggregate: st.ID, Head: head, Epoch: m.epoch, Parked: &storage.Failure{Number: number}}
	m.q.Park(st)
}

// unpark lets an operator unpark some or all aggregates. A new term begins.
func (m *model) unpark(all bool) {
	m.epoch++
	for _, id := range m.ids {
		if b, listed := m.entries[id]; listed && (all || m.random.IntN(2) == 0) {
			b.Parked, b.Epoch = nil, m.epoch
			m.entries[id] = b
		}
	}
	m.restart()
}

// verify compares some parked streams with positions. Some positions cannot be read.
func (m *model) verify() {
	some := m.q.TakeUnverified(1 + m.random.IntN(4))
	positions := map[aggregate.ID]uint64{}
	for _, st := range some {
		if m.random.IntN(4) > 0 {
			positions[st.ID] = m.stored[st.ID.Value]
		}
	}
	m.q.Verify(some, positions)
}

// compare runs a part of a reconciliation, or all of it, if one is due.
func (m *model) compare(all bool) {
	at, rewinds, may := m.q.LastReconciliation()
	if m.reconciling == nil {
		if since := m.now - at.UnixMilli(); !may || !at.IsZero() && since >= 0 && since < modelReconcileEvery {
			return
		}
		m.reconciling = &reconciliationOf{m.now, rewinds, m.ids}
	}
	n := len(m.reconciling.left)
	if !all {
		n = min(n, 3)
	}
	var moved []*journaltype.Record
	for _, id := range m.reconciling.left[:n] {
		if head := uint64(len(m.events[id])); head > m.stored[id] {
			moved = append(moved, testRecord(id, head, m.q.FinalAt()))
			if e := &m.events[id][head-1]; e.at >= m.shown {
				e.astray = true
			}
		}
	}
	m.q.ObserveReconciled(moved)
	if m.reconciling.left = m.reconciling.left[n:]; len(m.reconciling.left) == 0 {
		before, rewinds, _ := m.q.LastReconciliation()
		m.q.SetReconciled(time.UnixMilli(m.reconciling.began), m.reconciling.rewinds)
		if after, _, _ := m.q.LastReconciliation(); rewinds != m.reconciling.rewinds {
			require.Equal(m.t, before, after, "the cursor has turned back meanwhile")
		}
		m.reconciling = nil
	}
}

// runAhead sets the clock of the owner wrong for a moment. The tail is then final up to the future,
// and the cursor may pass later events.
func (m *model) runAhead() {
	m.poll(true)
	m.shown = m.now + modelAhead + int64(m.random.IntN(20))
	m.q.Enqueue(nil, true, m.shown)
}

// turnBack does what the source does when the cursor is in the future.
func (m *model) turnBack() {
	m.q.Rewind(m.now)
	m.shown, m.turned = m.now, true
	at, _, _ := m.q.LastReconciliation()
	require.True(m.t, at.IsZero(), "a sweep is due")
	m.q.Enqueue(nil, true, m.now)
	for _, events := range m.events {
		for i := range events {
			events[i].astray = events[i].astray || events[i].at < m.now
		}
	}
}

// store moves a position forward under an epoch.
func (m *model) store(id string, epoch, to uint64) (stored uint64, ok bool) {
	if m.stamped[id] > epoch {
		return 0, false
	}
	if m.stored[id] < to {
		m.stored[id], m.stamped[id] = to, epoch
	}
	return m.stored[id], true
}

// haunt is a late write of a former owner: of a position, and perhaps of an entry, or its removal.
func (m *model) haunt() {
	id := m.id()
	acked, knows := m.former.acked[id]
	if !knows {
		return
	}
	b, listed := m.entries[id]
	if m.random.IntN(3) == 0 && acked < m.former.head[id] && b.Epoch <= m.former.epoch {
		m.entries[id] = storage.Behind{
			Aggregate: aggregate.ID{Type: "account", Value: id}, Head: m.former.head[id], Epoch: m.former.epoch,
			Parked: &storage.Failure{Number: acked + 1},
		}
		return
	}
	stored, ok := m.store(id, m.former.epoch, acked)
	if ok && listed && acked >= m.former.head[id] && stored >= acked && b.Parked == nil && b.Epoch <= m.former.epoch {
		delete(m.entries, id)
	}
	m.nothingIsHidden()
}

// flush stores some positions and then, as the committer does, the behind list and the cursor.
func (m *model) flush(all bool) {
	for _, st := range inOrder(m.q.DirtyStreams()) {
		if all || m.random.IntN(2) == 0 {
			acked := m.q.AckedOf(st)
			stored, ok := m.store(st.ID.Value, m.epoch, acked)
			require.True(m.t, ok)
			m.promised[st.ID.Value] = stored
			st.Stored.Store(stored)
			m.q.Clean(st, stored)
		}
	}
	p := m.q.Progress()
	for _, st := range inOrder(p.List) {
		if entry, needed := m.q.BeginListing(st); needed {
			if entry.Failure != nil {
				require.Greater(m.t, entry.Failure.Number, m.q.AckedOf(st), "%s: handled since it failed", st.ID)
			}
			entry.Epoch = m.epoch
			m.entries[st.ID.Value] = entry
			m.q.SetListed(st, true)
		}
	}
	for _, st := range inOrder(p.Unlist) {
		if m.q.BeginUnlisting(st) {
			delete(m.entries, st.ID.Value)
			m.q.SetListed(st, false)
		}
	}
	if m.shown > m.now && m.random.IntN(2) == 0 {
		m.turnBack() // while the cursor is on its way
	}
	if p.Next != p.Saved {
		if !m.turned {
			require.GreaterOrEqual(m.t, p.Next.At, m.cursor, "the cursor goes forward")
		}
		m.cursor, m.reconciled = p.Next.At, max(0, p.Next.ReconciledAt.UnixMilli())
		m.turned = m.turned && p.rewinds != m.q.rewinds
		m.q.SaveCursor(p)
	}
	m.nothingIsHidden()
}

func inOrder(streams []*stream) []*stream {
	slices.SortFunc(streams, func(a, b *stream) int { return cmp.Compare(a.ID.Value, b.ID.Value) })
	return streams
}

// nothingIsHidden fails if a restart would not find an unhandled event. A restart finds an event by
// the behind list, or by the event or a later one of its aggregate after the cursor. If an event of
// the aggregate is astray, the next reconciliation may also find it, if it was written after the
// last reconciliation began. A cursor in the future is ignored.
func (m *model) nothingIsHidden() {
	if m.cursor > m.now {
		return
	}
	for id, events := range m.events {
		if _, listed := m.entries[id]; listed {
			continue
		}
		reconciled := false
		for _, e := range events[m.stored[id]:] {
			reconciled = reconciled || e.astray
		}
		last := len(events) // it leads to those before it
		if last == int(m.stored[id]) || events[last-1].at >= m.cursor {
			continue
		}
		require.True(m.t, reconciled && events[last-1].committed >= m.reconciled,
			"%s: a restart does not find event %d of %d, neither from the cursor %d on nor with the reconciliation after %d", id, last, events[last-1].committed, m.cursor, m.reconciled)
	}
}

// commit writes an event, dated now or perhaps long ago.
func (m *model) commit() {
	id := m.id()
	e := happening{at: m.now, committed: m.now, astray: m.now < m.shown}
	if m.astray && m.random.IntN(8) == 0 {
		e.at, e.astray = max(0, m.now-200), true
	}
	m.events[id] = append(m.events[id], e)
	if m.random.IntN(3) == 0 {
		m.q.Wake(aggregate.ID{Type: "account", Value: id}, uint64(len(m.events[id])))
	}
}

// hint reports a version from outside: the true one, a higher one, a lower one, or none.
func (m *model) hint() {
	id := m.id()
	hinted := uint64(len(m.events[id])) + uint64(m.random.IntN(4))
	m.q.Hint(aggregate.ID{Type: "account", Value: id}, hinted-min(hinted, uint64(m.random.IntN(4))))
}

// follow reads what follows an event because of a hint. The read may fail, or return a part.
func (m *model) follow(st *stream, from uint64) {
	hinted := m.q.TakeHint(st)
	if m.random.IntN(8) == 0 {
		m.hint() // during the read
	}
	var records []*journaltype.Record
	found, cut := from-1, false
	for n := from; n <= uint64(len(m.events[st.ID.Value])); n++ {
		if cut = len(records) > 0 && m.random.IntN(6) == 0; cut {
			found += uint64(m.random.IntN(2)) // the event that did not fit
			break
		}
		records, found = append(records, testRecord(st.ID.Value, n, m.events[st.ID.Value][n-1].at)), n
	}
	m.q.Followed(st, records, found, hinted, cut)
}

func (m *model) step() {
	m.now += int64(m.random.IntN(3))
	// A clock that was wrong is noticed before the present reaches the cursor.
	if ahead := max(m.shown, m.cursor) - m.now; ahead > 0 && ahead < 5 {
		m.poll(false)
		m.flush(false)
	}
	switch m.random.IntN(28) {
	case 0, 1, 2, 3, 4:
		m.commit()
	case 5, 6, 7:
		m.poll(m.random.IntN(2) == 0)
	case 8, 9, 10, 11, 12, 13:
		m.serve(1 + m.random.IntN(4))
	case 14, 15, 16:
		m.flush(m.random.IntN(2) == 0)
	case 17:
		m.q.Trim()
	case 18:
		if m.random.IntN(4) == 0 {
			m.restart()
		} else if m.former != nil {
			m.haunt()
		}
	case 19:
		if m.random.IntN(4) == 0 {
			m.unpark(false)
		}
	case 20:
		m.verify()
	case 21, 22:
		m.goOn()
	case 23, 24:
		if m.astray {
			m.compare(m.random.IntN(2) == 0)
		}
	case 26, 27:
		m.hint()
	case 25:
		if m.astray && m.random.IntN(6) == 0 {
			m.runAhead()
		}
	}
	total := 0
	for _, st := range m.q.streams {
		total += st.buffer.bytes
	}
	require.Equal(m.t, total, m.q.budget.used)
}

// drain finishes all work that needs no operator.
func (m *model) drain() {
	for range 10_000 {
		m.verify()
		m.goOn()
		if m.serve(10); len(m.queued) == 0 && len(m.hands) == 0 && len(m.delayed) == 0 && len(m.q.unverified) == 0 {
			m.flush(true)
			return
		}
	}
	require.Fail(m.t, "it does not come to an end")
}

// end lets the faults stop. All unhandled events are then found by the stored state, and only
// parked streams still wait. If a reconciliation is due, it runs.
func (m *model) end() {
	m.now++
	m.restart()
	m.restart() // so all parked streams must be verified
	m.poll(true)
	if m.now += modelReconcileEvery; m.astray {
		m.compare(true)
	}
	m.drain()
	for id, events := range m.events {
		if b, listed := m.entries[id]; listed && b.Parked != nil {
			require.Less(m.t, m.stored[id], b.Parked.Number, "%s is parked, but the group is beyond", id)
		} else {
			require.EqualValues(m.t, len(events), m.stored[id], "%s is found", id)
		}
	}
	for range 1_000 {
		if len(m.entries) == 0 {
			return
		}
		m.unpark(true)
		m.poll(true)
		m.drain()
	}
}

// The test performs reads, reconciliations, handlers, flushes, operators, wrong clocks and crashes
// in a random order. Each event is handled in order, and none again once its position is stored.
// The stored state leads to all unhandled events.
func TestTheSequencerAgainstAModel(t *testing.T) {
	t.Parallel()
	delivered := 0
	for seed := range testdb.Seeds(800) {
		m := newModel(t, seed)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
		for range 300 {
			m.step()
		}
		m.end()
		for id, events := range m.events {
			require.EqualValues(t, len(events), m.stored[id], "seed %d: %s is handled and stored", seed, id)
		}
		delivered += m.delivered
	}
	t.Logf("%d deliveries", delivered)
}
