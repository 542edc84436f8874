package scale

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// writer commits to its own aggregates, at its share of the rate. If it cannot keep up, it falls
// behind.
type writer struct {
	run     *run
	journal *journal.Journal
	random  *rand.Rand
	first   int // its first aggregate
	step    int // to the next one
	every   time.Duration
	payload []byte

	versions map[int]uint64
	commits  *Latencies
	failed   int
}

// writersAtOnce limits the number of writers, and so of concurrent commits.
const writersAtOnce = 1_000

// newWriters returns the writers. Some share a process.
func (r *run) newWriters(ctx context.Context) ([]*writer, error) {
	n := min(writersAtOnce, r.Aggregates, r.Rate)
	all := make([]*writer, n)
	var j *journal.Journal
	for i := range all {
		if i%20 == 0 {
			var err error
			if j, err = r.open(ctx); err != nil {
				return nil, err
			}
		}
		all[i] = &writer{
			run: r, journal: j, random: draw.New(r.random.Uint64(), 0),
			first: i, step: n, every: time.Second * time.Duration(n) / time.Duration(r.Rate),
			payload:  []byte(`{"note":"` + strings.Repeat("x", max(0, r.Payload-len(`{"note":""}`))) + `"}`),
			versions: map[int]uint64{}, commits: &Latencies{},
		}
	}
	return all, nil
}

// work commits until ctx ends. It does not cancel a running commit.
func (w *writer) work(ctx context.Context) {
	next := time.Now().Add(time.Duration(w.random.Int64N(int64(w.every))).Truncate(time.Millisecond))
	for retry.Sleep(ctx, max(0, time.Until(next))) {
		begin := time.Now()
		if w.commit(context.WithoutCancel(ctx)) {
			w.commits.add(time.Since(begin))
		} else {
			w.failed++
		}
		next = next.Add(w.every)
	}
}

// commit makes one commit and reports whether it was written.
func (w *writer) commit(ctx context.Context) bool {
	aggregates := (w.run.Aggregates - w.first + w.step - 1) / w.step
	n := w.first + w.step*w.random.IntN(aggregates)
	for {
		receipt, err := w.journal.Internal().Append(ctx, storage.Commit{
			Aggregate: idOf(n), Expected: w.versions[n], Events: []storage.Event{{Type: "order.changed.v1", Payload: w.payload}},
		})
		var conflict *journal.ConflictError
		switch {
		case err == nil:
			w.know(n, receipt.Version)
			return true
		// An earlier attempt was written after all.
		case errors.As(err, &conflict):
			w.know(n, conflict.Actual)
		default:
			return false
		}
	}
}

func (w *writer) know(n int, version uint64) {
	w.versions[n] = version
	w.run.truth.versions[n].Store(version)
}
