package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// remover is an operator that truncates or deletes aggregates while writers and groups work on
// them. Two removers work concurrently.
type remover struct {
	world   *world
	journal *journal.Journal
	random  *rand.Rand
}

// removers is the number of removers.
const removers = 2

// snapshotAt returns the snapshot of the state after an event.
func snapshotAt(number uint64) *journal.Snapshot {
	return &journal.Snapshot{Number: number, Payload: fmt.Appendf(nil, `{"events":%d}`, number)}
}

func (w *world) newRemover(ctx context.Context, name string, random *rand.Rand) (*remover, error) {
	client := w.wire(&member{name: name}, draw.Derive(random)).client(w.db)
	j, err := w.open(ctx, client, &clock{})
	if err != nil {
		return nil, err
	}
	return &remover{world: w, journal: j, random: random}, nil
}

// removals returns the disruptions of a world that remove events.
func (d disruptionPlan) removals() (kinds []Disruption) {
	for _, kind := range []Disruption{Truncations, Deletions} {
		if d.has(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// run removes events repeatedly until ctx ends.
func (r *remover) run(ctx context.Context, every time.Duration) {
	plan := r.world.plan
	for ctx.Err() == nil {
		pauseFor(ctx, exponential(r.random, every))
		kind, n := draw.Pick(r.random, plan.disruption.removals()...), r.random.IntN(plan.aggregates)
		if kind == Deletions {
			n += mortal - 1 - n%mortal
		}
		head, err := r.journal.Head(ctx, aggregate.ID{Type: draw.Pick(r.random, plan.topics...), Value: fmt.Sprint("a", n)})
		switch {
		case err != nil || !head.DeletedAt.IsZero():
		case kind == Deletions:
			r.remove(ctx, removal{id: head.Aggregate, before: head.Version + 1, deletes: true, after: r.expiry()})
		default:
			r.truncate(ctx, head)
		}
	}
}

// mortal says that one in this many aggregates may be deleted, but not the one with the most
// events.
const mortal = 4

// truncate removes events up to a snapshot or fewer, or tries to remove more.
func (r *remover) truncate(ctx context.Context, head journal.Head) {
	covered := uint64(1)
	if head.Snapshot != nil {
		covered = head.Snapshot.Number + 1
	}
	before := covered
	switch u := r.random.IntN(8); {
	case u == 0 && covered <= head.Version:
		before += 1 + r.random.Uint64N(head.Version+1-covered)
	case u < 4 && covered > 1:
		before -= r.random.Uint64N(covered - 1)
	}
	if before > 1 {
		r.remove(ctx, removal{id: head.Aggregate, before: before, after: r.expiry()})
	}
}

// expiry draws how long groups can still read removed events. The packed layout supports only 0.
func (r *remover) expiry() time.Duration {
	if r.world.plan.layout == journal.Packed {
		return 0
	}
	return draw.Pick(r.random, 0, 0, time.Second, 30*time.Second)
}

// removal is an operator's request for a removal.
type removal struct {
	id     aggregate.ID
	before uint64
	// deletes reports a deletion of the whole aggregate. Then before is the number after its last
	// event.
	deletes bool
	after   time.Duration
}

func (r removal) do(ctx context.Context, j *journal.Journal) error {
	if r.deletes {
		return j.Delete(ctx, r.id, r.before-1, journal.RemoveOptions{After: r.after})
	}
	return j.Truncate(ctx, r.id, r.before, journal.RemoveOptions{After: r.after})
}

// remove removes events. If it fails, finishRemovals repeats it at the end of the world. The oracle
// records it before.
func (r *remover) remove(ctx context.Context, what removal) {
	w, s := r.world, streamOf(what.id)
	if !w.keep(ctx, what.id, what.before-1) {
		return
	}
	w.oracle.remove(s, what.before)
	if w.removed(what, what.do(ctx, r.journal)) {
		what.after = 0
		w.begun = append(w.begun, what)
	}
}

// removed reports the result of a removal to the oracle, and returns whether to repeat it.
func (w *world) removed(what removal, err error) (repeat bool) {
	s := streamOf(what.id)
	var deleted *journal.DeletedError
	switch {
	case err == nil:
		w.oracle.note("removed", s.String())
		if what.deletes {
			w.oracle.deleted(s, what.before-1)
		}
	case errors.Is(err, journal.ErrNotCovered), what.deletes && errors.Is(err, journal.ErrConflict):
		w.oracle.note("remove refused", s.String())
		w.oracle.retract(s, what.before)
		return false
	case errors.As(err, &deleted):
		w.oracle.refused("remover", s, deleted.Version)
		return false
	default:
		w.oracle.note("remove failed", s.String())
	}
	return true
}

// keep makes the oracle keep the events of an aggregate up to a number, before they are removed. It
// reports whether it has all of them.
func (w *world) keep(ctx context.Context, id aggregate.ID, to uint64) (all bool) {
	s, from := streamOf(id), uint64(0)
	w.oracle.removal(s, func(r *removed) { from = uint64(len(r.kept)) + 1 })
	var events []*journal.Record
	for record, err := range w.journal.Events(ctx, id, from, to) {
		if err != nil {
			break
		}
		events = append(events, record)
	}
	w.oracle.removal(s, func(r *removed) {
		for _, event := range events {
			if event.Number == uint64(len(r.kept))+1 { // otherwise another operator was faster
				r.kept = append(r.kept, event)
			}
		}
		all = uint64(len(r.kept)) >= to
	})
	return all
}

// finishRemovals repeats all removals after the storm, as an operator must do after an error, and
// as if the time for groups had expired. Then the journal must report the removals.
func (w *world) finishRemovals(ctx context.Context) error {
	for _, what := range w.begun {
		if err := what.do(ctx, w.journal); w.removed(what, err) && err != nil {
			return err
		}
	}
	for _, s := range sorted(w.oracle.removals) {
		head, err := w.journal.Head(ctx, aggregate.ID{Type: s.topic, Value: s.id})
		if err != nil {
			return err
		}
		r := w.oracle.removals[s]
		if head.TruncatedBefore != r.before() || head.DeletedAt.IsZero() == r.deleted || r.deleted && head.Version != r.version {
			w.oracle.find(Removed, "%s has %d events, is truncated before #%d and deleted at %v, but was truncated before #%d, and deleted: %v, with event %d",
				s, head.Version, head.TruncatedBefore, head.DeletedAt, r.before(), r.deleted, r.version)
		}
	}
	return nil
}
