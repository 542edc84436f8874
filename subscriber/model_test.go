package subscriber

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// former is an owner that has lost the shard and does not know it yet.
type former struct {
	epoch       uint64
	acked, head map[string]uint64
}

// model is a journal's shard, what is stored of a group's work on it, and a sequencer whose owner
// may crash at any moment.
type model struct {
	t      *testing.T
	random *rand.Rand
	q      *sequencer
	epoch  uint64 // of the shard
	owner  uint64 // that of the sequencer

	ids    []string
	events map[string][]int64 // their times
	now    int64

	handled   map[string]uint64 // by handlers, all owners together
	stored    map[string]uint64
	stamped   map[string]uint64 // the epoch of the position
	promised  map[string]uint64 // what was stored by the owner of that time
	former    *former
	entries   map[string]checkpoint.Behind
	cursor    int64
	shown     int64 // the live read is here
	served    map[*stream]bool
	queued    []*stream
	delivered int
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), ids: []string{"a", "b", "c", "d", "e", "f"}, now: 1_000,
		events: map[string][]int64{}, handled: map[string]uint64{}, stored: map[string]uint64{}, entries: map[string]checkpoint.Behind{},
		stamped: map[string]uint64{}, promised: map[string]uint64{},
	}
	m.restart()
	return m
}

func (m *model) id() string { return m.ids[m.random.IntN(len(m.ids))] }

// restart has another owner take over: nothing but what is stored is known.
func (m *model) restart() {
	if m.q != nil {
		m.former = &former{epoch: m.owner, acked: map[string]uint64{}, head: map[string]uint64{}}
		for id, st := range m.q.streams {
			if st.claimed {
				m.former.acked[id], m.former.head[id] = st.acked, st.head
			}
		}
	}
	m.epoch++
	m.owner = m.epoch
	m.queued, m.served = nil, map[*stream]bool{}
	m.q = testSequencer()
	m.q.ready = func(st *stream, _ bool) {
		require.NotContains(m.t, m.queued, st, "it waits already")
		m.queued = append(m.queued, st)
	}
	var behind []checkpoint.Behind
	for _, id := range m.ids {
		if b, is := m.entries[id]; is {
			behind = append(behind, b)
		}
	}
	m.q.begin(savedCursor{at: m.cursor}, time.UnixMilli(m.now), behind, m.epoch)
	m.shown = m.cursor
}

// look is a live read up to a time: it leaves some events out, which trailing reads find.
func (m *model) look(everything bool) {
	until := m.now
	var records []*journal.Record
	for _, id := range m.ids {
		for n, at := range m.events[id] {
			if at >= m.shown && at < until && (everything || m.random.IntN(4) > 0) {
				records = append(records, testRecord(id, uint64(n+1), at))
			}
		}
	}
	m.random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	half := m.random.IntN(len(records) + 1)
	m.q.offer(records[:half], true, m.shown)
	m.q.hear(records[half:], byTrailing, m.shown)
	if everything {
		m.q.hear(nil, byTrailing, until)
		m.shown = until
	}
}

// serve is a worker's turn: it delivers some events of a stream.
func (m *model) serve(turns int) {
	if len(m.queued) == 0 {
		return
	}
	st := m.queued[0]
	m.queued = m.queued[1:]
	m.q.beginServing(st)
	id := st.id.Value
	if !st.claimed {
		m.q.claimed(st, m.stored[id])
		st.position.stored.Store(m.stored[id])
	}
	if st.inherited != nil {
		m.q.tookOver(st, uint64(len(m.events[id])))
	}
	for range turns {
		r, from, to := m.q.next(st)
		switch {
		case r == nil && to == 0:
			return
		case r == nil:
			require.LessOrEqual(m.t, to, uint64(len(m.events[id])), "read what is there")
			var records []*journal.Record
			for n := from; n <= to; n++ {
				records = append(records, testRecord(id, n, m.events[id][n-1]))
			}
			m.q.fill(st, records)
			continue
		}
		require.LessOrEqual(m.t, r.Number, m.handled[id]+1, "%s: without a gap", id)
		require.Greater(m.t, r.Number, m.promised[id], "%s: never again once it is stored", id)
		if m.random.IntN(6) == 0 {
			m.q.putOff(st)
			if m.random.IntN(3) == 0 {
				m.park(st, r.Number)
				return
			}
			m.q.resume(st)
			return
		}
		m.delivered++
		m.handled[id] = max(m.handled[id], r.Number)
		m.q.ack(st, r.Number)
	}
	m.q.endServing(st)
	m.q.ready(st, false)
}

func (m *model) park(st *stream, number uint64) {
	head, _ := m.q.expectEntry(st)
	m.entries[st.id.Value] = checkpoint.Behind{Aggregate: st.id, Head: head, Epoch: m.epoch, Parked: &checkpoint.Parked{Number: number}}
	m.q.park(st)
}

// unpark is an operator's: a new term begins.
func (m *model) unpark() {
	m.epoch++
	for id, b := range m.entries {
		b.Parked, b.Epoch = nil, m.epoch
		m.entries[id] = b
	}
	m.restart()
}

// store moves a position forward, under an epoch.
func (m *model) store(id string, epoch, to uint64) (stored uint64, ok bool) {
	if m.stamped[id] > epoch {
		return 0, false
	}
	if m.stored[id] < to {
		m.stored[id], m.stamped[id] = to, epoch
	}
	return m.stored[id], true
}

// haunt is a late write of a former owner: of a position, and perhaps the removal of an entry.
func (m *model) haunt() {
	id := m.id()
	acked, knows := m.former.acked[id]
	if !knows {
		return
	}
	stored, ok := m.store(id, m.former.epoch, acked)
	b, listed := m.entries[id]
	if ok && listed && acked >= m.former.head[id] && stored >= acked && b.Parked == nil && b.Epoch <= m.former.epoch {
		delete(m.entries, id)
	}
	m.nothingIsHidden()
}

// flush stores some positions, and then, as the committer does, list and cursor.
func (m *model) flush(all bool) {
	for _, st := range inOrder(m.q.dirtyStreams()) {
		if all || m.random.IntN(2) == 0 {
			acked := m.q.ackedOf(st)
			stored, ok := m.store(st.id.Value, m.epoch, acked)
			require.True(m.t, ok)
			m.promised[st.id.Value] = stored
			st.position.stored.Store(stored)
			m.q.clean(st, stored)
		}
	}
	p := m.q.progress()
	for _, st := range inOrder(p.list) {
		head, listed := m.q.expectEntry(st)
		if !listed {
			m.entries[st.id.Value] = checkpoint.Behind{Aggregate: st.id, Head: head, Epoch: m.epoch}
			m.q.setListed(st, true)
		}
	}
	for _, st := range inOrder(p.unlist) {
		if m.q.beginUnlisting(st) {
			delete(m.entries, st.id.Value)
			m.q.setListed(st, false)
		}
	}
	require.GreaterOrEqual(m.t, p.next.at, m.cursor, "the cursor goes forward")
	m.cursor = p.next.at
	m.q.saveCursor(p)
	m.nothingIsHidden()
}

func inOrder(streams []*stream) []*stream {
	slices.SortFunc(streams, func(a, b *stream) int { return cmp.Compare(a.id.Value, b.id.Value) })
	return streams
}

// nothingIsHidden: of each aggregate that is not done with, the last event that was due lies behind
// the cursor, or the list leads to it.
func (m *model) nothingIsHidden() {
	for id, times := range m.events {
		if m.stored[id] == uint64(len(times)) {
			continue
		}
		if _, listed := m.entries[id]; listed {
			continue
		}
		require.LessOrEqual(m.t, m.cursor, times[len(times)-1], "%s: a restart does not find event %d", id, len(times))
	}
}

func (m *model) step() {
	m.now += int64(m.random.IntN(3))
	switch m.random.IntN(20) {
	case 0, 1, 2, 3, 4:
		id := m.id()
		m.events[id] = append(m.events[id], m.now)
		if m.random.IntN(3) == 0 {
			m.q.wake(aggregate.ID{Type: "account", Value: id}, uint64(len(m.events[id])))
		}
	case 5, 6, 7:
		m.look(m.random.IntN(2) == 0)
	case 8, 9, 10, 11, 12, 13:
		m.serve(1 + m.random.IntN(4))
	case 14, 15, 16:
		m.flush(m.random.IntN(2) == 0)
	case 17:
		m.q.trim()
	case 18:
		if m.random.IntN(4) == 0 {
			m.restart()
		} else if m.former != nil {
			m.haunt()
		}
	case 19:
		if m.random.IntN(4) == 0 {
			m.unpark()
		}
	}
	total := 0
	for _, st := range m.q.streams {
		total += st.buffer.bytes
	}
	require.Equal(m.t, total, m.q.budget.used)
}

// TestTheSequencerAgainstAModel: whatever reads, handlers, flushes, operators and crashes do, in
// any order, each event is handled in order, none again once its position is stored, and what is
// stored leads to all that is left to do.
func TestTheSequencerAgainstAModel(t *testing.T) {
	t.Parallel()
	delivered := 0
	for seed := range uint64(300) {
		m := newModel(t, seed)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
		for range 300 {
			m.step()
		}
		m.unpark()
		m.now++
		m.look(true)
		for range 10_000 {
			if len(m.queued) == 0 {
				m.flush(true)
				if len(m.entries) == 0 {
					break
				}
				m.unpark()
				m.look(true)
			}
			m.serve(10)
		}
		for id, times := range m.events {
			require.EqualValues(t, len(times), m.stored[id], "seed %d: %s is handled and stored", seed, id)
		}
		delivered += m.delivered
	}
	t.Logf("%d deliveries", delivered)
}
