package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// writer commits events to random aggregates, in bursts: from its own process, or from one that
// also subscribes, whose commits wake its subscriber.
type writer struct {
	world   *world
	name    string
	random  *rand.Rand
	journal func() *journal.Journal // nil while its process is down
	// clock is the writer's own clock. It is nil if the process of the writer also subscribes.
	clock   *clock
	commits int                     // number of commits to write
	version map[aggregate.ID]uint64 // as far as it knows
	ids     int                     // number of event ids
	// proves reports that the writer passes the last version as proven, if it knows it.
	proves bool
}

func (w *writer) run(ctx context.Context) {
	w.version = map[aggregate.ID]uint64{}
	p := w.world.plan
	pause := p.duration / time.Duration(w.commits+1)
	for written := 0; written < w.commits && ctx.Err() == nil; {
		if w.random.IntN(10) > 0 { // in bursts of about ten
			pauseFor(ctx, draw.UpTo(w.random, pause/10))
		} else {
			pauseFor(ctx, draw.UpTo(w.random, 20*pause))
		}
		if j := w.journal(); j != nil {
			w.commit(ctx, j)
			written++
		}
	}
}

// commit makes one commit to an aggregate that it draws.
func (w *writer) commit(ctx context.Context, j *journal.Journal) {
	p := w.world.plan
	id := aggregate.ID{Type: draw.Pick(w.random, p.topics...), Value: fmt.Sprint("a", w.aggregate(p.aggregates))}
	if !w.world.isDeserted(id.Type, id.Value) {
		w.commitTo(ctx, j, id)
	}
}

// commitTo makes one commit to an aggregate, and repeats it after a conflict.
func (w *writer) commitTo(ctx context.Context, j *journal.Journal, id aggregate.ID) {
	p, commit := w.world.plan, storage.Commit{Aggregate: id}
	var ids []string
	for range 1 + w.random.IntN(p.commit) {
		ids = append(ids, w.id())
		commit.Events = append(commit.Events, storage.Event{ID: ids[len(ids)-1], Payload: p.payload(ids[len(ids)-1])})
	}
	s := streamOf(id)
	isDeleted := w.world.oracle.isDeleted(s)
	for range 5 {
		commit.Expected, commit.Proven = w.version[id], w.proves
		for i := range commit.Events {
			commit.Events[i].Type = eventType(commit.Expected + 1 + uint64(i))
		}
		if commit.Snapshot = nil; p.disruption.has(Truncations) && w.random.IntN(4) == 0 {
			commit.Snapshot = snapshotAt(commit.Version())
		}
		receipt, err := j.Internal().Append(ctx, commit)
		var conflict *journal.ConflictError
		var deleted *journal.DeletedError
		isConflict := errors.As(err, &conflict)
		if isDeleted && (err == nil || isConflict && conflict.Actual > 0) {
			w.world.oracle.find(Removed, "%s writes to %s, which was deleted before, and gets %v", w.name, s, err)
		}
		switch {
		case err == nil:
			w.version[id] = receipt.Version
			w.world.oracle.committed(w.name, s, receipt.Version, ids)
			return
		// The writer forgets the deletion, so that it writes to the aggregate again.
		case errors.As(err, &deleted):
			w.world.oracle.refused(w.name, s, deleted.Version)
			return
		// Possibly written. The next commit will find out.
		case !isConflict:
			w.world.oracle.note("failed", w.name)
			return
		}
		w.version[id] = conflict.Actual
	}
}

// id returns the name of an event. A name derived from its place would need a digest.
func (w *writer) id() string {
	w.ids++
	return fmt.Sprint(w.name, "-", w.ids)
}

// aggregate draws an aggregate; half of the events belong to a tenth of them.
func (w *writer) aggregate(of int) int {
	if hot := of / 10; hot > 0 && w.random.IntN(2) == 0 {
		return w.random.IntN(hot)
	}
	return w.random.IntN(of)
}

// pauseFor waits for d, or until ctx ends.
func pauseFor(ctx context.Context, d time.Duration) { retry.Sleep(ctx, d) }
