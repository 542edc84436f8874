package subscriber

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// world is a finer model than model: what the real code does in steps is done in steps here, by
// routines of which any may go on at any moment. Requests may fail, be done without a reply, or be
// done late. Former owners go on until they are refused.
type world struct {
	random *rand.Rand
	kind   worldKind
	calm   bool // nothing fails any more
	traced bool
	trace  []string

	// How often what happens: one of so many requests fails, and there are so many changes of the owner
	// in a thousand steps.
	failures, changes int

	now    int64
	since  int64 // where the group starts
	ids    []string
	logs   map[string]*worldLog
	passed int64 // the furthest that the tail was final for an owner

	epoch     uint64 // of the shard
	positions map[string]worldPosition
	entries   map[string]worldEntry
	cursor    worldCursor
	late      []func() error

	owner    *worldOwner // nil while an operator has the shard
	formers  []*worldOwner
	operator *worldTask

	handled   map[string]uint64 // by handlers, or passed over
	promised  map[string]uint64 // stored by the owner of that time
	delivered int
}

// worldKind is what is configured, and what happens.
type worldKind struct {
	astray    bool // imports and wrong clocks
	commits   bool // handlers commit positions
	elsewhere bool // positions are in another store
	starts    bool // the group starts at a time
	broadcast bool
	removals  bool // truncations and corrupt events
	policy    policyKind
}

type worldLog struct {
	events  []worldEvent
	removed uint64 // those up to here
}

type worldEvent struct {
	at, committed int64
	visible       int64 // from when on the tail shows it
	astray        bool  // perhaps no read of the tail shows it
	corrupt       bool
}

type worldPosition struct {
	epoch, position uint64
	found           bool
}

type worldEntry struct {
	checkpoint.Behind
	revision uint64
}

type worldCursor struct {
	found     bool
	epoch     uint64
	at, swept int64
}

// What takes how long, in milliseconds of the model.
const (
	worldTrailing = 10
	worldSweeps   = 150
	worldBehind   = 12
	worldAttempts = 2
)

type worldFailure string

var (
	errWorldGone      = errors.New("the routine has ended")
	errWorldIO        = errors.New("the request failed")
	errWorldCondition = errors.New("the condition of a transaction is false")
)

func (w *world) fail(format string, args ...any) {
	panic(worldFailure(fmt.Sprintf(format, args...)))
}

func (w *world) log(format string, args ...any) {
	if w.traced {
		w.trace = append(w.trace, fmt.Sprintf("%5d ", w.now)+fmt.Sprintf(format, args...))
	}
}

func (w *world) one(in int) bool { return w.random.IntN(in) == 0 }

func newWorld(seed uint64) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 1)), now: 1_000, ids: []string{"a", "b", "c", "d", "e"}, logs: map[string]*worldLog{},
		positions: map[string]worldPosition{}, entries: map[string]worldEntry{}, cursor: worldCursor{swept: -1},
		handled: map[string]uint64{}, promised: map[string]uint64{},
	}
	w.kind = worldKind{astray: w.one(2), commits: w.one(3), elsewhere: w.one(4), starts: w.one(4), broadcast: w.one(8), removals: w.one(3)}
	w.failures, w.changes = 8+w.random.IntN(30), 1+w.random.IntN(12)
	w.ids = w.ids[:2+w.random.IntN(4)]
	w.kind.policy = []policyKind{block, park, park, park, poisonQueue, skip}[w.random.IntN(6)]
	if w.kind.broadcast {
		w.kind.commits, w.kind.elsewhere, w.kind.astray = false, false, false
		w.kind.policy = block
	}
	for _, id := range w.ids {
		w.logs[id] = &worldLog{}
		if w.kind.starts {
			for range w.random.IntN(3) {
				w.logs[id].events = append(w.logs[id].events, worldEvent{at: 900, committed: 900, visible: 900})
			}
		}
		w.handled[id] = w.begins(id)
	}
	if w.kind.starts {
		w.since = 1_000
	}
	w.take()
	return w
}

// begins is where the group begins with an aggregate.
func (w *world) begins(id string) uint64 {
	n := uint64(0)
	for _, e := range w.logs[id].events {
		if e.at < 1_000 && w.kind.starts {
			n++
		}
	}
	return n
}

func (w *world) head(id string) uint64 { return uint64(len(w.logs[id].events)) }

// worldTask is a routine.
type worldTask struct {
	next func() (struct{}, bool)
	stop func()
	done bool
}

func newWorldTask(f func(y func())) *worldTask {
	task := &worldTask{}
	task.next, task.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != errWorldGone { //nolint:errorlint // as it is
				panic(r)
			}
		}()
		f(func() {
			if !yield(struct{}{}) {
				panic(errWorldGone)
			}
		})
	})
	return task
}

func (t *worldTask) step() {
	if _, more := t.next(); !more {
		t.done = true
	}
}

// The store.

func (w *world) readPosition(id string, epoch uint64) (uint64, bool, error) {
	row := w.positions[id]
	if row.epoch > epoch {
		return 0, false, ErrFenced
	}
	return row.position, row.found, nil
}

func (w *world) claimPosition(id string, epoch uint64) (uint64, bool, error) {
	row := w.positions[id]
	if row.epoch > epoch {
		return 0, false, ErrFenced
	}
	row.epoch = epoch
	w.positions[id] = row
	return row.position, row.found, nil
}

func (w *world) storePosition(id string, epoch, to uint64) (uint64, error) {
	row := w.positions[id]
	if row.epoch > epoch {
		return 0, ErrFenced
	}
	if row.found && row.position >= to {
		return row.position, nil
	}
	w.log("position %s %d->%d by %d", id, row.position, to, epoch)
	w.positions[id] = worldPosition{epoch, to, true}
	if epoch == w.epoch {
		w.promised[id] = max(w.promised[id], to)
	}
	w.check()
	return to, nil
}

func (w *world) advance(id string, epoch, from, to uint64) error {
	row := w.positions[id]
	if row.epoch > epoch {
		return ErrFenced
	}
	if from == 0 && row.position != 0 || from > 0 && (row.epoch != epoch || row.position != from) {
		return errWorldCondition
	}
	w.log("transaction %s %d->%d by %d", id, from, to, epoch)
	w.positions[id] = worldPosition{epoch, to, true}
	w.check()
	return nil
}

func (w *world) listBehind(epoch, revision uint64, b checkpoint.Behind) error {
	row, there := w.entries[b.Aggregate.Value]
	if there && (row.Epoch > epoch || row.Epoch == epoch && row.revision > revision) {
		return ErrFenced
	}
	w.log("entry %s head %d parked %v by %d.%d", b.Aggregate.Value, b.Head, b.Parked, epoch, revision)
	b.Epoch = epoch
	w.entries[b.Aggregate.Value] = worldEntry{b, revision}
	w.check()
	return nil
}

func (w *world) unlistBehind(epoch, revision uint64, id string) error {
	row, there := w.entries[id]
	if there && (row.Epoch > epoch || row.Epoch == epoch && row.revision > revision) {
		return ErrFenced
	}
	w.log("no entry %s by %d.%d", id, epoch, revision)
	delete(w.entries, id)
	w.check()
	return nil
}

func (w *world) saveCursor(epoch uint64, at, swept int64) error {
	if w.cursor.epoch > epoch {
		return ErrFenced
	}
	w.log("cursor %d swept %d by %d", at, swept, epoch)
	w.cursor = worldCursor{true, epoch, max(0, at), max(0, swept)}
	w.check()
	return nil
}

// check: what is stored leads to all that is left to do. To each aggregate its entry leads, or an
// event from the cursor on, its last one, or the next sweep, if one of its events is astray and the
// last one came after the last sweep.
func (w *world) check() {
	if w.kind.broadcast || !w.cursor.found || w.cursor.at > w.now+worldTrailing {
		return
	}
	for _, id := range w.ids {
		if _, listed := w.entries[id]; listed {
			continue
		}
		log := w.logs[id]
		done := max(w.positions[id].position, log.removed, w.begins(id))
		if done >= w.head(id) {
			continue
		}
		last := log.events[len(log.events)-1]
		if last.at >= w.cursor.at {
			continue
		}
		astray := slices.ContainsFunc(log.events[done:], func(e worldEvent) bool { return e.astray })
		// The first owner counts as having swept when it begins to read the tail, which shows less then.
		if !astray || max(last.committed, last.visible) < w.cursor.swept {
			w.fail("HIDDEN %s: a restart does not find event %d of %d, neither from the cursor %d on nor with the sweep after %d",
				id, w.head(id), last.at, w.cursor.at, w.cursor.swept)
		}
	}
}

// worldOwner is a term.
type worldOwner struct {
	w           *world
	epoch       uint64
	q           *sequencer
	fresh       bool
	commits     bool
	stopping    bool
	saved       bool
	dead        bool
	tasks       []*worldTask
	queue       []*stream
	delayed     []*stream
	hands       map[*stream]int
	revisions   uint64
	live, trail int64
	skew        int64
	swaying     bool
}

// take has another owner begin.
func (w *world) take() {
	w.epoch++
	o := &worldOwner{w: w, epoch: w.epoch, fresh: w.epoch == 1 && !w.kind.elsewhere, hands: map[*stream]int{}}
	w.log("owner %d", o.epoch)
	o.q = newSequencer(limits{
		broadcast: w.kind.broadcast, idleStreams: 1 + w.random.IntN(3), maxUnstored: 2 + w.random.IntN(5), maxFailing: 100, maxUnfinished: 100,
		behindAfter: worldBehind * time.Millisecond,
	}, &budget{size: 1_000, lanes: 2}, &counters{}, func(st *stream, _ bool) {
		if slices.Contains(o.queue, st) {
			w.fail("%s waits for a worker already", st.id.Value)
		}
		o.queue = append(o.queue, st)
	})
	o.q.now = func() time.Time { return time.UnixMilli(w.now) }
	w.owner = o
	o.spawn(o.source)
	o.spawn(o.committer)
	o.spawn(o.timers)
	for range 3 {
		o.spawn(o.worker)
	}
	if w.kind.astray {
		o.spawn(o.sweeper)
	}
}

func (o *worldOwner) spawn(f func(y func())) *worldTask {
	task := newWorldTask(f)
	o.tasks = append(o.tasks, task)
	return task
}

func (o *worldOwner) die() {
	o.dead = true
	for _, task := range o.tasks {
		task.stop()
	}
	o.tasks = nil
}

// step lets one routine go on.
func (o *worldOwner) step() {
	if len(o.tasks) == 0 {
		return
	}
	n := o.w.random.IntN(len(o.tasks))
	task := o.tasks[n]
	if task.step(); task.done {
		o.tasks = slices.DeleteFunc(o.tasks, func(t *worldTask) bool { return t == task })
	}
	if o.dead {
		o.die()
	}
}

// parallel does some things side by side.
func (o *worldOwner) parallel(y func(), fs []func(y func()) error) (worst error) {
	left := len(fs)
	for _, f := range fs {
		o.spawn(func(y func()) {
			if err := f(y); err != nil {
				worst = err
			}
			left--
		})
	}
	for left > 0 {
		y()
	}
	return worst
}

// read is a request that changes nothing.
func (o *worldOwner) read(y func(), do func() error) error {
	y()
	if !o.w.calm && o.w.one(o.w.failures) {
		return errWorldIO
	}
	err := do()
	if o.w.one(2) {
		y()
	}
	return o.noted(err)
}

// write is a request that changes something: perhaps without a reply, or late.
func (o *worldOwner) write(y func(), do func() error) error {
	y()
	n := o.w.random.IntN(o.w.failures)
	if o.w.calm {
		n = 4 + n%2
	}
	switch n {
	case 0:
		y()
		return errWorldIO
	case 1, 2:
		_ = do()
		y()
		return errWorldIO
	case 3:
		o.w.late = append(o.w.late, do)
		y()
		return errWorldIO
	}
	err := do()
	if n%2 == 0 {
		y()
	}
	return o.noted(err)
}

func (o *worldOwner) noted(err error) error {
	if errors.Is(err, ErrFenced) {
		if o == o.w.owner {
			o.w.fail("the owner %d is refused", o.epoch)
		}
		o.w.log("%d is fenced", o.epoch)
		o.dead = true
		panic(errWorldGone)
	}
	return err
}

func (o *worldOwner) lock(y func(), st *stream) {
	for !st.position.mu.TryLock() {
		y()
	}
}

// The source.

func (o *worldOwner) begin(y func()) {
	w := o.w
	for {
		at, saved := w.since, savedCursor{at: w.since}
		swept := time.UnixMilli(w.now)
		var behind []checkpoint.Behind
		var err error
		if !o.fresh && !w.kind.broadcast {
			err = o.read(y, func() error {
				if w.cursor.found {
					at = w.cursor.at
				}
				if w.cursor.swept >= 0 {
					swept = time.UnixMilli(w.cursor.swept)
					saved.swept = swept
				}
				return nil
			})
			for _, id := range w.ids { // page by page
				if err == nil {
					err = o.read(y, func() error {
						if b, is := w.entries[id]; is {
							behind = append(behind, b.Behind)
						}
						return nil
					})
				}
			}
		}
		if err != nil {
			continue
		}
		saved.at = at
		o.live, o.trail = at, at
		o.q.begin(saved, swept, behind, o.epoch)
		w.log("%d begins at %d, swept %d, with %d", o.epoch, at, saved.swept.UnixMilli(), len(behind))
		return
	}
}

func (o *worldOwner) source(y func()) {
	o.begin(y)
	for !o.stopping {
		y()
		o.look(y)
	}
}

// visible returns what the tail has from a time until another one.
func (o *worldOwner) visible(from, until int64) (records []*journal.Record, corrupt map[*journal.Record]bool) {
	corrupt = map[*journal.Record]bool{}
	for _, id := range o.w.ids {
		for n, e := range o.w.logs[id].events {
			if e.at >= from && e.at <= until && e.visible <= o.w.now && uint64(n) >= o.w.logs[id].removed {
				r := testRecord(id, uint64(n+1), e.at)
				records = append(records, r)
				corrupt[r] = e.corrupt
			}
		}
	}
	slices.SortStableFunc(records, func(a, b *journal.Record) int { return a.WrittenAt.Compare(b.WrittenAt) })
	return records, corrupt
}

func (o *worldOwner) final(to int64) {
	o.trail = to
	o.w.passed = max(o.w.passed, to)
	for _, log := range o.w.logs {
		for i := range log.events {
			if e := &log.events[i]; e.at < to && e.visible > o.w.now {
				e.astray = true
			}
		}
	}
}

func (o *worldOwner) look(y func()) {
	w := o.w
	now := w.now + o.skew
	if o.live-now > worldTrailing {
		o.live, o.trail = now-worldTrailing, now-worldTrailing
		w.log("%d turns back to %d", o.epoch, o.live)
		o.q.turnBack(o.live)
	}
	var records []*journal.Record
	var corrupt map[*journal.Record]bool
	more := false
	err := o.read(y, func() error {
		records, corrupt = o.visible(o.live, now+worldTrailing)
		next := o.live
		if n := 1 + w.random.IntN(6); len(records) > n && !records[n].WrittenAt.Equal(records[0].WrittenAt) {
			for n > 0 && records[n].WrittenAt.Equal(records[n-1].WrittenAt) {
				n--
			}
			if n > 0 {
				records, more = records[:n], true
			}
		}
		if len(records) > 0 {
			next = records[len(records)-1].WrittenAt.UnixMilli()
			if more {
				next++
			}
		}
		for _, r := range records {
			if corrupt[r] {
				o.q.hear([]*journal.Record{{Aggregate: r.Aggregate, Number: r.Number, WrittenAt: time.UnixMilli(o.trail)}}, byTail, o.trail)
			}
		}
		records = slices.DeleteFunc(records, func(r *journal.Record) bool { return corrupt[r] })
		if o.trail == o.live {
			switch horizon := now - worldTrailing; {
			case next < horizon:
				o.final(next)
			case horizon > o.trail:
				o.final(horizon)
			}
		}
		o.live = next
		slices.SortStableFunc(records, func(a, b *journal.Record) int { return int(a.Number) - int(b.Number) })
		if w.traced && len(records) > 0 {
			var b strings.Builder
			for _, r := range records {
				fmt.Fprintf(&b, " %s%d@%d", r.Aggregate.Value, r.Number, r.WrittenAt.UnixMilli())
			}
			w.log("%d reads%s, final %d", o.epoch, b.String(), o.trail)
		}
		o.q.offer(records, !more, o.trail)
		return nil
	})
	if err != nil {
		return
	}
	until := min(w.now+o.skew-worldTrailing, o.live)
	if o.trail == o.live || until < o.trail {
		return
	}
	_ = o.read(y, func() error {
		records, _ := o.visible(o.trail, until)
		if until == o.live {
			o.final(o.live)
		} else {
			o.final(until + 1)
		}
		o.q.hear(records, byTrailing, o.trail)
		return nil
	})
}

// The sweeper.

func (o *worldOwner) sweeper(y func()) {
	w := o.w
	for !o.stopping {
		y()
		at, turns, may := o.q.lastSweep()
		if since := w.now - at.UnixMilli(); !may || !at.IsZero() && since >= 0 && since < worldSweeps {
			continue
		}
		began := w.now
		ids := w.ids
		for len(ids) > 0 && !o.stopping {
			n := min(len(ids), 1+w.random.IntN(3))
			var moved []*journal.Record
			heads := map[string]uint64{}
			err := o.read(y, func() error {
				for _, id := range ids[:n] {
					heads[id] = w.head(id)
				}
				return nil
			})
			if err == nil {
				err = o.read(y, func() error {
					for _, id := range ids[:n] {
						if heads[id] > w.positions[id].position {
							moved = append(moved, testRecord(id, heads[id], o.q.finalAt()))
						}
					}
					return nil
				})
			}
			if err != nil {
				continue
			}
			w.log("%d sweeps %d: %d", o.epoch, n, len(moved))
			o.q.hear(moved, bySweep, 0)
			ids = ids[n:]
			y()
		}
		if len(ids) == 0 {
			o.q.setSwept(time.UnixMilli(began), turns)
			w.log("%d swept %d", o.epoch, began)
		}
	}
}

// The committer.

func (o *worldOwner) committer(y func()) {
	for !o.stopping {
		y()
		o.verifyParked(y)
		o.flush(y, o.w.one(2))
	}
	for len(o.tasks) > 1 { // what is being served
		y()
	}
	for o.flush(y, true) != nil {
		y()
	}
	o.dead = true
}

func (o *worldOwner) verifyParked(y func()) {
	some := o.q.takeUnverified(1 + o.w.random.IntN(3))
	if len(some) == 0 {
		return
	}
	var positions map[aggregate.ID]uint64
	_ = o.read(y, func() (err error) {
		positions = map[aggregate.ID]uint64{}
		for _, st := range some {
			if o.w.kind.elsewhere {
				positions[st.id], _, err = o.w.claimPosition(st.id.Value, o.epoch)
			} else {
				positions[st.id] = o.w.positions[st.id.Value].position
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if !o.stopping {
		o.q.verify(some, positions)
	}
}

func (o *worldOwner) flush(y func(), cursor bool) error {
	var rows []func(y func()) error
	for _, st := range inOrder(o.q.dirtyStreams()) {
		rows = append(rows, func(y func()) error { return o.flushPosition(y, st) })
	}
	err := o.parallel(y, rows)
	if cursor && !o.w.kind.broadcast {
		if failed := o.saveCursor(y); failed != nil {
			err = failed
		}
	}
	return err
}

func (o *worldOwner) flushPosition(y func(), st *stream) error {
	if !st.position.mu.TryLock() {
		return nil
	}
	defer st.position.mu.Unlock()
	if err := o.resolve(y, st); err != nil {
		return err
	}
	stored := st.position.stored.Load()
	if acked := o.q.ackedOf(st); acked > stored {
		var err error
		if stored, err = o.store(y, st, stored, acked); err != nil {
			return err
		}
	}
	o.q.clean(st, stored)
	return nil
}

func (o *worldOwner) store(y func(), st *stream, from, to uint64) (position uint64, err error) {
	switch {
	case o.w.kind.broadcast:
		position = to
		o.w.promised[st.id.Value] = to
	case !o.w.kind.elsewhere:
		err = o.write(y, func() (err error) {
			position, err = o.w.storePosition(st.id.Value, o.epoch, to)
			return err
		})
	default:
		position = to
		err = o.write(y, func() error { return o.w.advance(st.id.Value, o.epoch, from, to) })
		st.position.doubt = err != nil
	}
	if err != nil {
		return 0, err
	}
	st.position.stored.Store(position)
	return position, nil
}

func (o *worldOwner) resolve(y func(), st *stream) error {
	if !st.position.doubt {
		return nil
	}
	return o.fence(y, st)
}

func (o *worldOwner) fence(y func(), st *stream) error {
	var position uint64
	err := o.write(y, func() (err error) {
		position, _, err = o.w.claimPosition(st.id.Value, o.epoch)
		return err
	})
	if err != nil {
		return err
	}
	st.position.doubt, st.position.fenced = false, true
	st.position.stored.Store(position)
	return nil
}

func (o *worldOwner) revision() uint64 {
	o.revisions++
	return o.revisions
}

func (o *worldOwner) saveCursor(y func()) error {
	p := o.q.progress()
	y()
	var rows []func(y func()) error
	for _, st := range inOrder(p.list) {
		rows = append(rows, func(y func()) error { return o.list(y, st) })
	}
	if err := o.parallel(y, rows); err != nil {
		return err
	}
	if p.next != p.saved || len(p.unlist) > 0 && !o.saved {
		err := o.write(y, func() error { return o.w.saveCursor(o.epoch, p.next.at, p.next.swept.UnixMilli()) })
		if err != nil {
			return err
		}
		o.q.saveCursor(p)
		o.saved = true
	}
	rows = nil
	for _, st := range inOrder(p.unlist) {
		rows = append(rows, func(y func()) error { return o.unlist(y, st) })
	}
	return o.parallel(y, rows)
}

func (o *worldOwner) lockListing(y func(), st *stream) {
	y()
	for !st.listing.TryLock() {
		y()
	}
}

func (o *worldOwner) list(y func(), st *stream) error {
	o.lockListing(y, st)
	defer st.listing.Unlock()
	head, needed := o.q.beginListing(st)
	if !needed {
		return nil
	}
	revision := o.revision()
	err := o.write(y, func() error {
		return o.w.listBehind(o.epoch, revision, checkpoint.Behind{Aggregate: st.id, Head: head})
	})
	if err != nil {
		return err
	}
	o.q.setListed(st, true)
	return nil
}

func (o *worldOwner) unlist(y func(), st *stream) error {
	o.lockListing(y, st)
	defer st.listing.Unlock()
	if !o.q.beginUnlisting(st) {
		return nil
	}
	revision := o.revision()
	if err := o.write(y, func() error { return o.w.unlistBehind(o.epoch, revision, st.id.Value) }); err != nil {
		return err
	}
	o.q.setListed(st, false)
	return nil
}

func (o *worldOwner) park(y func(), st *stream, number uint64) error {
	o.lockListing(y, st)
	defer st.listing.Unlock()
	head := o.q.expectEntry(st)
	revision := o.revision()
	err := o.write(y, func() error {
		return o.w.listBehind(o.epoch, revision, checkpoint.Behind{Aggregate: st.id, Head: head, Parked: &checkpoint.Parked{Number: number}})
	})
	if err != nil {
		return err
	}
	o.q.park(st)
	return nil
}

// The claim.

func (o *worldOwner) claim(y func(), st *stream) error {
	w, id := o.w, st.id.Value
	_, forgotten := o.q.positionOf(st.id)
	if !forgotten && o.fresh && !w.kind.starts && !o.q.hasForgotten(st.id) {
		o.claimed(st, 0, true)
		return nil
	}
	if w.kind.broadcast {
		if position, forgotten := o.q.positionOf(st.id); forgotten {
			o.claimed(st, position, false)
			return nil
		}
		return o.baseline(y, st, false)
	}
	fences := w.kind.elsewhere || o.commits || w.kind.policy == skip
	var position uint64
	var found bool
	var err error
	if fences {
		err = o.write(y, func() (err error) {
			position, found, err = w.claimPosition(id, o.epoch)
			return err
		})
	} else {
		err = o.read(y, func() (err error) {
			position, found, err = w.readPosition(id, o.epoch)
			return err
		})
	}
	if err != nil {
		return err
	}
	if !found && w.kind.starts {
		return o.baseline(y, st, fences)
	}
	o.claimed(st, position, fences)
	return nil
}

func (o *worldOwner) claimed(st *stream, position uint64, fenced bool) {
	o.w.log("%d claims %s at %d", o.epoch, st.id.Value, position)
	st.position.fenced = fenced
	st.position.stored.Store(position)
	o.q.claimed(st, position)
}

func (o *worldOwner) baseline(y func(), st *stream, fenced bool) error {
	var before uint64
	err := o.read(y, func() error {
		before = o.w.begins(st.id.Value)
		return nil
	})
	if err != nil {
		return err
	}
	st.position.fenced, st.position.begins = fenced, true
	o.w.log("%d claims %s at its beginning %d", o.epoch, st.id.Value, before)
	o.q.claimed(st, before)
	return nil
}

func (o *worldOwner) storeBaseline(y func(), st *stream) error {
	o.lock(y, st)
	defer st.position.mu.Unlock()
	if err := o.resolve(y, st); err != nil {
		return err
	}
	begin, stored := o.q.ackedOf(st), st.position.stored.Load()
	if stored == 0 || stored < begin {
		var err error
		if stored, err = o.store(y, st, stored, begin); err != nil {
			return err
		}
	}
	st.position.begins = false
	o.q.clean(st, stored)
	return nil
}

func (o *worldOwner) takeOver(y func(), st *stream) error {
	var head uint64
	if err := o.read(y, func() error {
		head = o.w.head(st.id.Value)
		return nil
	}); err != nil {
		return err
	}
	o.w.log("%d takes over %s to %d", o.epoch, st.id.Value, head)
	o.q.tookOver(st, head)
	return nil
}

// The deliverer.

func (o *worldOwner) timers(y func()) {
	for !o.stopping {
		y()
		if n := len(o.delayed); n > 0 {
			n = o.w.random.IntN(n)
			st := o.delayed[n]
			o.delayed = slices.Delete(o.delayed, n, n+1)
			o.q.resume(st)
		}
	}
}

func (o *worldOwner) worker(y func()) {
	for !o.stopping {
		y()
		if len(o.queue) == 0 {
			continue
		}
		n := 0
		if o.w.one(2) {
			n = o.w.random.IntN(len(o.queue))
		}
		st := o.queue[n]
		o.queue = slices.Delete(o.queue, n, n+1)
		o.serve(y, st)
	}
}

func (o *worldOwner) serve(y func(), st *stream) {
	o.q.beginServing(st)
	if err := o.prepare(y, st); err != nil {
		o.fail(y, st, err)
		return
	}
	for delivered := 0; ; delivered++ {
		if o.stopping || !o.q.admit(st) {
			return
		}
		if delivered >= 2 && o.w.one(3) {
			o.q.endServing(st)
			o.queue = append(o.queue, st)
			return
		}
		more, err := o.step1(y, st)
		if err != nil {
			o.fail(y, st, err)
		}
		if err != nil || !more {
			return
		}
	}
}

func (o *worldOwner) prepare(y func(), st *stream) error {
	if !st.claimed {
		if err := o.claim(y, st); err != nil {
			return err
		}
	}
	if st.inherited != nil {
		return o.takeOver(y, st)
	}
	return nil
}

// worldCorrupt is a failed read at a corrupt event; 0: nobody knows at which.
type worldCorrupt uint64

func (worldCorrupt) Error() string { return "corrupt" }

// worldFailed is a failed attempt at an event.
type worldFailed uint64

func (worldFailed) Error() string { return "failed" }

func (o *worldOwner) step1(y func(), st *stream) (more bool, err error) {
	if v := st.delivery.verdict; v != nil {
		if o.w.kind.policy == skip {
			return true, o.skip(y, st)
		}
		return false, o.park(y, st, v.number)
	}
	var record *journal.Record
	for {
		r, from, to := o.q.next(st)
		if r == nil && to == 0 {
			return false, nil
		}
		if record = r; record != nil {
			break
		}
		if err := o.fetch(y, st, from, to); err != nil {
			return false, err
		}
	}
	if st.delivery.number != record.Number {
		st.delivery = delivery{number: record.Number}
	}
	if st.position.begins {
		if err := o.storeBaseline(y, st); err != nil {
			return false, err
		}
	}
	return true, o.send(y, st, record.Number)
}

func (o *worldOwner) fetch(y func(), st *stream, from, to uint64) error {
	id := st.id.Value
	return o.read(y, func() error {
		if to > o.w.head(id) {
			o.w.fail("%s: event %d is read, of %d", id, to, o.w.head(id))
		}
		var records []*journal.Record
		for n := from; n <= to; n++ {
			if removed := o.w.logs[id].removed; n <= removed {
				if len(records) == 0 {
					o.w.log("%d passes %s to %d", o.epoch, id, removed)
					o.q.pass(st, removed)
					o.w.handled[id] = max(o.w.handled[id], removed)
				}
				break
			}
			if o.w.logs[id].events[n-1].corrupt {
				if o.w.one(4) {
					return worldCorrupt(0)
				}
				return worldCorrupt(n)
			}
			records = append(records, testRecord(id, n, o.w.logs[id].events[n-1].at))
			if o.w.one(3) {
				break
			}
		}
		if len(records) > 0 {
			o.q.fill(st, records)
		}
		return nil
	})
}

// send hands out an event.
func (o *worldOwner) send(y func(), st *stream, number uint64) error {
	w, id := o.w, st.id.Value
	w.log("%d delivers %s%d", o.epoch, id, number)
	if number > w.handled[id]+1 {
		w.fail("GAP %s: %d comes after %d", id, number, w.handled[id])
	}
	if number <= w.begins(id) {
		w.fail("EARLY %s: %d is of before the group", id, number)
	}
	if o == w.owner && number <= w.promised[id] {
		w.fail("AGAIN %s: %d comes, %d is stored", id, number, w.promised[id])
	}
	if st.state == parked {
		w.fail("PARKED %s: %d comes", id, number)
	}
	if o.hands[st]++; o.hands[st] > 1 {
		w.fail("TWICE %s: %d comes beside another", id, number)
	}
	w.delivered++
	for w.one(2) {
		y()
	}
	o.hands[st]--
	fails := !w.calm && w.one(5)
	if w.kind.commits && !w.one(6) {
		o.commits = true
		if fails && w.one(2) { // it was given up, and goes on
			o.spawn(func(y func()) { _ = o.commit(y, st, number) })
			return worldFailed(number)
		}
		o.hands[st]++
		err := o.commit(y, st, number)
		o.hands[st]--
		if err != nil {
			return worldFailed(number)
		}
		fails = false
	}
	if fails {
		return worldFailed(number)
	}
	w.handled[id] = max(w.handled[id], number)
	o.ack(st, max(number, st.position.stored.Load()))
	return nil
}

func (o *worldOwner) ack(st *stream, number uint64) {
	st.delivery = delivery{}
	o.q.ack(st, number)
}

func (o *worldOwner) commit(y func(), st *stream, number uint64) error {
	p := &st.position
	o.lock(y, st)
	defer p.mu.Unlock()
	p.handling.Store(true)
	defer p.handling.Store(false)
	o.commits = true
	if p.doubt || !p.fenced {
		if err := o.fence(y, st); err != nil {
			return err
		}
	}
	from := p.stored.Load()
	if from >= number {
		return nil
	}
	p.doubt = true
	id := st.id.Value
	err := o.write(y, func() error {
		err := o.w.advance(id, o.epoch, from, number)
		if err == nil {
			o.w.handled[id] = max(o.w.handled[id], number)
		}
		return err
	})
	if err != nil {
		return err
	}
	p.doubt = false
	p.stored.Store(number)
	return nil
}

func (o *worldOwner) delay(st *stream) {
	o.q.putOff(st)
	o.delayed = append(o.delayed, st)
}

func (o *worldOwner) fail(y func(), st *stream, err error) {
	var corrupt worldCorrupt
	var failed worldFailed
	switch {
	case errors.As(err, &corrupt):
		if o.q.beforeCorrupt(st, uint64(corrupt)) {
			o.delay(st)
			return
		}
		failed = worldFailed(o.q.ackedOf(st) + 1)
	case !errors.As(err, &failed):
		o.delay(st)
		return
	}
	o.w.log("%d: %s%d fails", o.epoch, st.id.Value, failed)
	if st.delivery.attempts++; o.w.kind.policy != block && st.delivery.attempts >= worldAttempts {
		if err := o.giveUp(y, st, uint64(failed)); err != nil {
			o.delay(st)
		}
		return
	}
	o.delay(st)
}

func (o *worldOwner) giveUp(y func(), st *stream, number uint64) error {
	p := &st.position
	stored, committing := uint64(0), p.handling.Load()
	if !committing {
		o.lock(y, st)
		err := o.resolve(y, st)
		stored = p.stored.Load()
		p.mu.Unlock()
		if err != nil {
			return err
		}
	} else if o.w.kind.policy != skip {
		return errCommitting
	}
	if stored >= number {
		o.ack(st, stored)
		o.q.resume(st)
		return nil
	}
	if o.w.kind.policy == poisonQueue {
		y()
		o.w.handled[st.id.Value] = max(o.w.handled[st.id.Value], number)
		o.ack(st, number)
		_ = o.flushPosition(y, st)
		o.q.resume(st)
		return nil
	}
	st.delivery.verdict = &verdict{number: number}
	o.q.resume(st)
	return nil
}

func (o *worldOwner) skip(y func(), st *stream) error {
	p, number, id := &st.position, st.delivery.verdict.number, st.id.Value
	if p.handling.Load() {
		return errCommitting
	}
	o.lock(y, st)
	defer p.mu.Unlock()
	if p.doubt || !p.fenced || o.w.kind.elsewhere {
		p.doubt = true
		if err := o.fence(y, st); err != nil {
			return err
		}
	}
	if stored := p.stored.Load(); stored >= number {
		if err := o.read(y, func() error { return nil }); err != nil {
			return err
		}
		o.ack(st, stored)
		return nil
	}
	p.doubt = true
	from := p.stored.Load()
	err := o.write(y, func() error {
		err := o.w.advance(id, o.epoch, from, number)
		if err == nil {
			o.w.handled[id] = max(o.w.handled[id], number)
		}
		return err
	})
	if err != nil {
		return err
	}
	p.doubt = false
	p.stored.Store(number)
	o.ack(st, number)
	return nil
}

// The rest of the world.

func (w *world) commit() {
	id := w.ids[w.random.IntN(len(w.ids))]
	e := worldEvent{at: w.now, committed: w.now, visible: w.now}
	if w.one(3) {
		e.visible += int64(w.random.IntN(worldTrailing - 1))
	}
	if w.kind.astray && w.one(8) {
		e.at, e.visible = max(w.since, w.now-200), w.now
	}
	if w.kind.astray && w.one(15) {
		e.at = w.now + int64(w.random.IntN(60))
	}
	e.astray = e.at < w.passed
	e.corrupt = w.kind.removals && !w.calm && w.one(10)
	w.logs[id].events = append(w.logs[id].events, e)
	w.log("event %s%d@%d (visible %d, astray %v, corrupt %v)", id, w.head(id), e.at, e.visible, e.astray, e.corrupt)
	for _, o := range append(slices.Clone(w.formers), w.owner) {
		if o != nil && w.one(3) {
			o.q.wake(aggregate.ID{Type: "account", Value: id}, w.head(id))
		}
	}
}

// truncate removes events, or repairs corrupt ones.
func (w *world) truncate() {
	log := w.logs[w.ids[w.random.IntN(len(w.ids))]]
	if n := len(log.events); n > 0 && w.one(2) {
		log.removed = max(log.removed, uint64(w.random.IntN(n+1)))
		return
	}
	for i := range log.events {
		log.events[i].corrupt = false
	}
}

// lose has the owner be a former one, which may not know that yet.
func (w *world) lose() {
	o := w.owner
	w.owner = nil
	if o == nil {
		return
	}
	if w.one(3) {
		o.die()
		return
	}
	w.formers = append(w.formers, o)
	if len(w.formers) > 2 {
		w.formers[0].die()
		w.formers = w.formers[1:]
	}
}

// operate has an operator edit some rows.
func (w *world) operate(all bool) {
	w.lose()
	w.epoch++
	epoch, what := w.epoch, w.random.IntN(6)
	if all {
		what = 0
	}
	w.log("operator %d does %d", epoch, what)
	w.operator = newWorldTask(func(y func()) {
		y()
		switch what {
		case 4: // a sweep
			if w.cursor.found {
				w.cursor.epoch, w.cursor.swept = epoch, 0
			}
		case 5: // one goes back
			id := w.ids[w.random.IntN(len(w.ids))]
			if row := w.positions[id]; row.found && row.position > w.begins(id) {
				_ = w.listBehind(epoch, 0, checkpoint.Behind{Aggregate: aggregate.ID{Type: "account", Value: id}, Head: w.head(id)})
				y()
				to := w.begins(id) + uint64(w.random.IntN(int(w.positions[id].position-w.begins(id))))
				w.log("position %s back to %d", id, to)
				w.positions[id] = worldPosition{epoch, to, true}
				w.promised[id] = 0
				w.check()
			}
		default:
			for _, id := range w.ids {
				y()
				row, is := w.entries[id]
				if !is || row.Parked == nil || !all && w.one(2) {
					continue
				}
				b := row.Behind
				b.Head, b.Parked = max(b.Head, b.Parked.Number), nil
				_ = w.listBehind(epoch, 0, b)
			}
		}
		y()
	})
}

func (w *world) step() {
	if w.one(3) {
		w.now += int64(w.random.IntN(3))
	}
	if w.operator != nil && w.one(3) {
		if w.operator.step(); w.operator.done {
			w.operator = nil
			w.take()
		}
	}
	if len(w.late) > 0 && w.one(40) {
		n := w.random.IntN(len(w.late))
		do := w.late[n]
		w.late = slices.Delete(w.late, n, n+1)
		w.log("a late write")
		_ = do()
	}
	if !w.calm {
		w.disturb()
	}
	for i, o := range w.formers {
		if w.one(2) {
			o.step()
		}
		if o.dead || w.one(400) {
			o.die()
			w.formers = slices.Delete(w.formers, i, i+1)
			break
		}
	}
	if o := w.owner; o != nil {
		if o.step(); o.dead { // it has come to rest
			o.die()
			w.owner = nil
			w.take()
		}
	}
}

func (w *world) disturb() {
	switch n := w.random.IntN(1_000); {
	case n < 50:
		w.commit()
	case n < 54 && w.kind.removals:
		w.truncate()
	case n < 54:
	case n < 54+w.changes && w.operator == nil && !w.kind.broadcast:
		w.lose()
		w.take()
	case n < 66:
	case n < 68 && w.operator == nil && !w.kind.broadcast:
		w.operate(false)
	case n < 70 && w.owner != nil && !w.kind.broadcast:
		w.log("%d stops", w.owner.epoch)
		w.owner.stopping = true
	case n < 76 && w.owner != nil && w.kind.astray:
		w.owner.skew = 0
		if w.one(2) {
			w.owner.skew = worldTrailing + int64(w.random.IntN(40))
		}
	case n < 82 && w.owner != nil:
		w.owner.q.trim()
	}
}

// left reports an aggregate that is not done: not all of it is handled and stored, but it is not
// parked either.
func (w *world) left(parkedToo bool) string {
	for _, id := range w.ids {
		done := w.positions[id].position
		if w.kind.broadcast {
			done = w.handled[id]
		}
		if max(done, w.begins(id), w.logs[id].removed) >= w.head(id) {
			continue
		}
		if b, listed := w.entries[id]; listed && b.Parked != nil && !parkedToo && done < b.Parked.Number {
			continue
		}
		return id
	}
	return ""
}

// finish is calm: what is left is found by what is stored.
func (w *world) finish() {
	w.calm = true
	for _, o := range w.formers {
		o.die()
	}
	w.formers = nil
	for _, do := range w.late {
		if w.one(2) {
			_ = do()
		}
	}
	w.late = nil
	for w.operator != nil {
		w.step()
	}
	for _, log := range w.logs {
		for i := range log.events {
			log.events[i].corrupt = false
		}
	}
	if w.owner.skew = 0; !w.kind.broadcast {
		w.log("calm")
		w.owner.die()
		w.now += worldTrailing + 1
		w.take()
	}
	w.await("after a takeover", false)
	for w.left(true) != "" {
		w.operate(true)
		for w.owner == nil {
			w.step()
		}
		w.await("after an unpark", false)
	}
	w.owner.die()
}

func (w *world) await(what string, parkedToo bool) {
	for n := range 12_000 {
		if n%50 == 0 && w.left(parkedToo) == "" {
			return
		}
		w.step()
	}
	id := w.left(parkedToo)
	if o := w.owner; o != nil && w.traced {
		w.log("queue %d delayed %d waiting %d dirty %d/%d tasks %d", len(o.queue), len(o.delayed), len(o.q.waiting), len(o.q.dirty), o.q.maxUnstored, len(o.tasks))
		if st := o.q.streams[id]; st != nil {
			w.log("state %d claimed %v acked %d head %d hint %d@%d swept %d led %d listed %d entry %v inherited %v serving %v stored %d begins %v doubt %v fenced %v cautious %v", st.state, st.claimed, st.acked, st.head, st.hint, st.hintAt, st.swept, st.led, st.listed, st.entry, st.inherited, st.serving, st.position.stored.Load(), st.position.begins, st.position.doubt, st.position.fenced, st.cautious)
		}
	}
	w.fail("LEFT %s: %s: %d of %d, entry %v, %+v", what, id, w.positions[id].position, w.head(id), w.entries[id], w.kind)
}

// runWorld runs a seed and returns what went wrong.
func runWorld(seed uint64, steps int, traced bool) (w *world, failure string) {
	w = newWorld(seed)
	w.traced = traced
	defer func() {
		if r := recover(); r != nil {
			f, is := r.(worldFailure)
			if !is {
				panic(r)
			}
			failure = string(f)
			if w.owner != nil {
				for _, task := range w.owner.tasks {
					func() {
						defer func() { _ = recover() }()
						task.stop()
					}()
				}
			}
		}
	}()
	for range steps {
		w.step()
	}
	w.finish()
	return w, ""
}

// TestTheStepsOfATermAgainstAModel is TestTheSequencerAgainstAModel with the steps of the committer
// and the deliverer in any order.
func TestTheStepsOfATermAgainstAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(worldSeeds) {
		_, failure := runWorld(seed, 2_000, false)
		if failure != "" {
			w, _ := runWorld(seed, 2_000, true)
			t.Log(strings.Join(w.trace, "\n"))
		}
		require.Empty(t, failure, "seed %d", seed)
	}
}

const worldSeeds = 1_000
