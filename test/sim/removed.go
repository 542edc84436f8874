package sim

import (
	"slices"

	"github.com/millrace-dev/millrace/journal"
)

// removed is what operators have removed of an aggregate, or may have.
type removed struct {
	// points are the events before which all was asked to be removed. One that was asked for twice
	// is there twice.
	points []uint64
	// kept are the events from the first on, as they were before anybody removed them.
	kept []*journal.Record
	// deleted: an operator was told that the aggregate is deleted. Version is that of its last event.
	deleted bool
	version uint64
}

// before is the furthest point.
func (r *removed) before() uint64 {
	if r == nil || len(r.points) == 0 {
		return 0
	}
	return slices.Max(r.points)
}

// removedOf returns what was removed of the aggregate of a stream. The caller holds mu.
func (o *oracle) removedOf(s stream) *removed {
	return o.removals[stream{topic: s.topic, id: s.id}]
}

// removal calls do with what was removed of an aggregate.
func (o *oracle) removal(s stream, do func(*removed)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := stream{topic: s.topic, id: s.id}
	if o.removals[key] == nil {
		o.removals[key] = &removed{}
	}
	do(o.removals[key])
}

// remove is told that an operator is about to remove the events before one.
func (o *oracle) remove(s stream, before uint64) {
	o.removal(s, func(r *removed) {
		o.trace.note("remove", "operator", s, before)
		r.points = append(r.points, before)
	})
}

// retract is told that nothing came of that, and nothing will.
func (o *oracle) retract(s stream, before uint64) {
	o.removal(s, func(r *removed) {
		if i := slices.Index(r.points, before); i >= 0 {
			r.points = slices.Delete(r.points, i, i+1)
		}
	})
}

// deleted is told that an aggregate was deleted after an event.
func (o *oracle) deleted(s stream, version uint64) {
	o.removal(s, func(r *removed) { r.deleted, r.version = true, version })
}

// isDeleted reports whether an operator was told that an aggregate is deleted.
func (o *oracle) isDeleted(s stream) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.removedOf(s)
	return r != nil && r.deleted
}

// refused is told that somebody was refused because an aggregate was deleted after an event.
func (o *oracle) refused(who string, s stream, version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("refused", who, s, version)
	if r := o.removedOf(s); r == nil || !slices.Contains(r.points, version+1) {
		o.finding(Removed, "%s is told that %s was deleted after event %d, which nobody asked for", who, s, version)
	}
}

// passes looks whether a member that hands out an event has passed over those before it, because
// they were removed. It has done so up to a point then, and up to the next event that the group
// asks for. The caller holds mu.
func (o *oracle) passes(m *member, s stream, h *history, a *acquaintance, number uint64) {
	from := max(h.position(), a.acked)
	if r := o.removedOf(s); r != nil && number > o.next(s.group, from) {
		for _, before := range r.points {
			if before-1 > from && number == o.next(s.group, before-1) {
				o.trace.note("pass over", m.name, s, before-1)
				a.acked = before - 1
				o.done(h, max(h.acked, a.acked))
				return
			}
		}
	}
}

// hasPassed reports whether a member may store a position because it has passed over what was
// removed behind another. The caller holds mu.
func (o *oracle) hasPassed(s stream, from, to uint64) bool {
	r := o.removedOf(s)
	return r != nil && slices.ContainsFunc(r.points, func(before uint64) bool {
		return before-1 > from && before-1 <= to && to < o.next(s.group, before-1)
	})
}

// withoutEffect notes which events a projection has passed over when a position is stored: the
// first ones, as many as the effect leaves out that was stored with it. The caller holds mu.
func (o *oracle) withoutEffect(h *history, w positionWrite) {
	before := o.removedOf(w.stream).before()
	if before == 0 {
		return
	}
	events := happenedIn(h, h.position(), w.to)
	events = events[:max(0, len(events)-int(w.effects))] //nolint:gosec // a world has few
	if len(events) == 0 || events[len(events)-1] >= before {
		return // what is missing then shows in the end
	}
	for _, number := range events {
		h.passed[number] = true
	}
}

// happenedIn returns the events between two positions that happened and were not skipped.
func happenedIn(h *history, after, to uint64) (numbers []uint64) {
	for number := after + 1; number <= to; number++ {
		if _, skipped := h.skipped[number]; hasHappened(number) && !skipped {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// passedOf counts the events of a stream that a projection has passed over or that were removed
// behind its position in the end, and sums up their numbers.
func (o *oracle) passedOf(s stream) (n, sum uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.streams[s]
	if h == nil {
		h = &history{}
	}
	for number := range h.passed {
		n, sum = n+1, sum+number
	}
	if before := o.removedOf(s).before(); before > 0 {
		for _, number := range happenedIn(h, h.position(), before-1) {
			n, sum = n+1, sum+number
		}
	}
	return n, sum
}

// doneTo returns up to which event a group is done with an aggregate that has so many: it has acked
// them, or they were removed. The caller holds mu.
func (o *oracle) doneTo(s stream, head uint64) uint64 {
	done := o.ackedOf(s)
	if before := o.removedOf(s).before(); before > 0 {
		done = max(done, before-1)
	}
	return min(done, head)
}

// isRemovedBehind reports whether all events behind a position, up to one that was acked, were
// removed: if that was not stored before a crash, nothing may lead to them. The caller holds mu.
func (o *oracle) isRemovedBehind(s stream, position, acked uint64) bool {
	return position < acked && acked < o.removedOf(s).before()
}
