package readmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

var rebuilt = flag.Int("rebuild.events", 2_000, "how many events there are when a read model is built anew")

func TestAReadModelIsBuiltAnewWhileItIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const each = 500 // events of an aggregate
	versions := make([]int, max(2, *rebuilt/each))
	for i := range versions {
		for ; versions[i] < each; versions[i] += 50 {
			w.write(name(i), versions[i], 50)
		}
	}
	config := w.config()
	config.MaxLag = 40 // while the writers continue
	m, other := w.open(config), w.open(config)
	w.run(m)
	w.run(other) // another process
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	old, err := m.Serving(ctx)
	require.NoError(t, err)
	require.NoError(t, m.CatchUp(ctx, old, nil))
	for i, version := range versions { // CatchUp leaves out up to MaxLag events
		require.NoError(t, groups.New(w.j).WaitApplied(ctx, old.Group(), account(name(i)), uint64(version)))
	}

	var work sync.WaitGroup
	var over atomic.Bool
	// grown counts the aggregates with as many new events as a serving generation may lack.
	var grown atomic.Int32
	const writers = 2
	for writer := range writers {
		work.Add(1)
		go func() {
			defer work.Done()
			for i := writer; !over.Load(); i += writers {
				n := i % len(versions)
				w.write(name(n), versions[n], 5)
				if versions[n] += 5; versions[n] == each+int(config.MaxLag) {
					grown.Add(1)
				}
				// Writers wait for the serving generation. Otherwise the new one could never catch
				// up.
				if !assert.NoError(t, groups.New(w.j).WaitApplied(ctx, old.Group(), account(name(n)), uint64(versions[n]))) {
					return
				}
			}
		}()
	}
	var reads, byNew atomic.Int32
	work.Add(1)
	// A query never fails, and never returns less than before the rebuild.
	go func() {
		defer work.Done()
		for i := 0; !over.Load(); i++ {
			g, err := other.Serving(ctx)
			if !assert.NoError(t, err) {
				return
			}
			read, err := w.row(ctx, g, name(i%len(versions)))
			if !assert.NoError(t, err) || !assert.GreaterOrEqual(t, read.total, each*(each+1)/2) {
				return
			}
			reads.Add(1)
			if g != old {
				byNew.Add(1)
			}
		}
	}()

	require.Eventually(t, func() bool { return reads.Load() > 0 }, patience, time.Millisecond, "the serving one is read")
	next, err := m.Begin(ctx)
	require.NoError(t, err)
	w.pauseInBetween(ctx, m, next)
	var seen []readmodel.Progress
	require.NoError(t, m.CatchUp(ctx, next, func(p readmodel.Progress) { seen = append(seen, p) }))
	assert.LessOrEqual(t, seen[len(seen)-1].Left, uint64(40))
	// Without this, the new generation might lack events from before the rebuild.
	require.Eventually(t, func() bool { return int(grown.Load()) == len(versions) }, 5*patience, time.Millisecond)
	var behind *readmodel.BehindError
	for err = m.Switch(ctx, next); errors.As(err, &behind); {
		err = m.Switch(ctx, next)
	}
	require.NoError(t, err)
	require.Eventually(t, func() bool { return byNew.Load() > 0 }, patience, time.Millisecond, "the other process reads the new one")
	over.Store(true)
	work.Wait()
	assert.Positive(t, reads.Load()-byNew.Load())

	written := 0
	for _, g := range []readmodel.Generation{old, next} {
		for i, version := range versions {
			replayed := w.replay(ctx, name(i), version)
			require.NoError(t, groups.New(w.j).WaitApplied(ctx, g.Group(), account(name(i)), uint64(version)))
			read, err := w.row(ctx, g, name(i))
			require.NoError(t, err)
			assert.Equal(t, replayed, read, "%s in %s", name(i), g)
			written += version - each
		}
	}
	t.Logf("%d events, %d more were written and %d queries made meanwhile, %d of them of the new generation",
		len(versions)*each, written/2, reads.Load(), byNew.Load())
}

func name(i int) string { return fmt.Sprint("a", i) }

func account(id string) aggregate.ID { return aggregate.ID{Type: topic, Value: id} }

// pauseInBetween pauses the group of a generation that is being built, and resumes it.
func (w *world) pauseInBetween(ctx context.Context, m *readmodel.Model, g readmodel.Generation) {
	w.t.Helper()
	group := groups.Of(w.j, g.Group(), topic)
	for err := groups.ErrNoGroup; err != nil; { // its first member creates the group
		if err = group.Pause(ctx); err != nil {
			require.ErrorIs(w.t, err, groups.ErrNoGroup)
		}
	}
	require.NoError(w.t, group.WaitIdle(ctx))
	before, err := m.Progress(ctx, g)
	require.NoError(w.t, err)
	after, err := m.Progress(ctx, g)
	require.NoError(w.t, err)
	assert.GreaterOrEqual(w.t, after.Left, before.Left, "nothing is handled")
	require.NoError(w.t, group.Resume(ctx))
}

// replay applies the events of an account, as they are read from the journal.
func (w *world) replay(ctx context.Context, id string, version int) (r row) {
	w.t.Helper()
	head, err := w.j.Version(ctx, account(id))
	require.NoError(w.t, err)
	require.EqualValues(w.t, version, head)
	for record, err := range w.j.Events(ctx, account(id), 1, head) {
		require.NoError(w.t, err)
		var e Deposited
		require.NoError(w.t, json.Unmarshal(record.Payload, &e))
		r.total += e.Amount
		r.number = int(record.Number)
	}
	return r
}
