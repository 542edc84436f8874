package sim

import (
	"slices"

	"github.com/millrace-dev/millrace/journal"
)

// removed records the removals of an aggregate, including those with an unknown result.
type removed struct {
	// points are the requested truncation points. A point that was requested twice is there twice.
	points []uint64
	// kept are the events before the removal, starting with the first.
	kept []*journal.Record
	// deleted reports that an operator knows that the aggregate is deleted. Version is the number
	// of its last event.
	deleted bool
	version uint64
}

// before returns the furthest point.
func (r *removed) before() uint64 {
	if r == nil || len(r.points) == 0 {
		return 0
	}
	return slices.Max(r.points)
}

// removedOf returns the removals of the aggregate of a stream. The caller holds mu.
func (o *oracle) removedOf(s stream) *removed {
	return o.removals[stream{topic: s.topic, id: s.id}]
}

// removal calls a function with the removals of an aggregate.
func (o *oracle) removal(s stream, do func(*removed)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := stream{topic: s.topic, id: s.id}
	if o.removals[key] == nil {
		o.removals[key] = &removed{}
	}
	do(o.removals[key])
}

// remove records that an operator is about to remove the events before one.
func (o *oracle) remove(s stream, before uint64) {
	o.removal(s, func(r *removed) {
		o.trace.note("remove", "operator", s, before)
		r.points = append(r.points, before)
	})
}

// retract records that such a removal has failed and will not happen.
func (o *oracle) retract(s stream, before uint64) {
	o.removal(s, func(r *removed) {
		if i := slices.Index(r.points, before); i >= 0 {
			r.points = slices.Delete(r.points, i, i+1)
		}
	})
}

// deleted records that an aggregate was deleted after an event.
func (o *oracle) deleted(s stream, version uint64) {
	o.removal(s, func(r *removed) { r.deleted, r.version = true, version })
}

// isDeleted reports whether an operator knows that an aggregate is deleted.
func (o *oracle) isDeleted(s stream) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.removedOf(s)
	return r != nil && r.deleted
}

// refused records that a caller was refused because an aggregate was deleted after an event.
func (o *oracle) refused(who string, s stream, version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("refused", who, s, version)
	if r := o.removedOf(s); r == nil || !slices.Contains(r.points, version+1) {
		o.finding(Removed, "%s got the error that %s was deleted after event %d, which was not requested", who, s, version)
	}
}

// passes checks whether a member that delivers an event has passed over the events before it
// because they were removed. Then it has passed over them up to a truncation point, and up to the
// next event that the group wants. The caller holds mu.
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

// hasPassed reports whether a member may store a position because it has passed over removed events
// after another position. The caller holds mu.
func (o *oracle) hasPassed(s stream, from, to uint64) bool {
	r := o.removedOf(s)
	return r != nil && slices.ContainsFunc(r.points, func(before uint64) bool {
		return before-1 > from && before-1 <= to && to < o.next(s.group, before-1)
	})
}

// withoutEffect records the events that a projection has passed over when a position is stored: the
// first ones, as many as have no effect in the same transaction. The caller holds mu.
func (o *oracle) withoutEffect(h *history, w positionWrite) {
	before := o.removedOf(w.stream).before()
	if before == 0 {
		return
	}
	events := happenedIn(h, h.position(), w.to)
	events = events[:max(0, len(events)-int(w.effects))] //nolint:gosec // a world has few
	if len(events) == 0 || events[len(events)-1] >= before {
		// The missing effects are found at the end.
		return
	}
	for _, number := range events {
		h.passed[number] = true
	}
}

// happenedIn returns the events of the type happened between two positions that were not skipped.
func happenedIn(h *history, after, to uint64) (numbers []uint64) {
	for number := after + 1; number <= to; number++ {
		if _, skipped := h.skipped[number]; hasHappened(number) && !skipped {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// passedOf returns the number of events of a stream that a projection has passed over or that were
// removed after its position at the end, and the sum of their numbers.
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

// doneTo returns the last event up to which a group is done with an aggregate that has so many
// events: it has acked them, or they were removed. The caller holds mu.
func (o *oracle) doneTo(s stream, head uint64) uint64 {
	done := o.ackedOf(s)
	if before := o.removedOf(s).before(); before > 0 {
		done = max(done, before-1)
	}
	return min(done, head)
}

// isRemovedBehind reports whether all events after a position, up to an acked one, were removed. If
// the acked position was not stored before a crash, no event leads to it any more. The caller holds
// mu.
func (o *oracle) isRemovedBehind(s stream, position, acked uint64) bool {
	return position < acked && acked < o.removedOf(s).before()
}
