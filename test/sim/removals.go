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

// remover is an operator that truncates aggregates while writers and groups work on them. Two work
// side by side.
type remover struct {
	world   *world
	journal *journal.Journal
	random  *rand.Rand
}

// removers is how many there are.
const removers = 2

// snapshotAt is the snapshot of the state after an event.
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

// run removes something again and again, until ctx ends.
func (r *remover) run(ctx context.Context, every time.Duration) {
	plan := r.world.plan
	for ctx.Err() == nil {
		pauseFor(ctx, exponential(r.random, every))
		id := aggregate.ID{Type: draw.Pick(r.random, plan.topics...), Value: fmt.Sprint("a", r.random.IntN(plan.aggregates))}
		if head, err := r.journal.Head(ctx, id); err == nil && head.DeletedAt.IsZero() {
			r.truncate(ctx, head)
		}
	}
}

// truncate removes events that a snapshot stands for, as far as that or less far, or tries to
// remove more.
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

// expiry draws how long the events are left to groups. In the packed layout that is refused.
func (r *remover) expiry() time.Duration {
	if r.world.plan.layout == journal.Packed {
		return 0
	}
	return draw.Pick(r.random, 0, 0, time.Second, 30*time.Second)
}

// removal is a call of an operator.
type removal struct {
	id     aggregate.ID
	before uint64
	after  time.Duration
}

func (r removal) do(ctx context.Context, j *journal.Journal) error {
	return j.Truncate(ctx, r.id, r.before, journal.Removal{After: r.after})
}

// remove removes events, and leaves it to the end of the world to finish that. The oracle is told
// before.
func (r *remover) remove(ctx context.Context, what removal) {
	w, s := r.world, streamOf(what.id)
	if !w.keep(ctx, what.id, what.before-1) {
		return
	}
	w.oracle.remove(s, what.before)
	err := what.do(ctx, r.journal)
	switch {
	case err == nil:
		w.oracle.note("removed", s.String())
	case errors.Is(err, journal.ErrNotCovered):
		w.oracle.note("not covered", s.String())
		w.oracle.retract(s, what.before)
		return
	default:
		w.oracle.note("remove failed", s.String())
	}
	what.after = 0
	w.begun = append(w.begun, what)
}

// keep has the oracle keep the events of an aggregate up to one, before somebody removes them. It
// reports whether it has them all.
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
			if event.Number == uint64(len(r.kept))+1 { // else another operator was faster
				r.kept = append(r.kept, event)
			}
		}
		all = uint64(len(r.kept)) >= to
	})
	return all
}

// finishRemovals repeats all removals when all is calm, as one that has failed is, and as if what
// was left to groups for a while had expired. Then the journal has to say what was removed.
func (w *world) finishRemovals(ctx context.Context) error {
	for _, what := range w.begun {
		if err := what.do(ctx, w.journal); err != nil {
			return err
		}
	}
	for _, s := range sorted(w.oracle.removals) {
		before := w.oracle.removals[s].before()
		head, err := w.journal.Head(ctx, aggregate.ID{Type: s.topic, Value: s.id})
		if err != nil {
			return err
		}
		if head.TruncatedBefore != before {
			w.oracle.find(Removed, "%s is truncated before #%d, not #%d", s, head.TruncatedBefore, before)
		}
	}
	return nil
}
