package subscriber

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// sweepPause is the time between two pages of a comparison of all aggregates, each up to 1 MB, so
// that it takes at most some 130 read units a second, besides those of positions. recentPause is
// that for each thousand events that are read again.
const (
	comparePause = time.Second
	recentPause  = 100 * time.Millisecond
)

// sweepTurn is how long a reconciliation goes on before the other shards have their turns.
const reconcileSlice = time.Minute

// sweeping compares the journal with positions, one shard after the other, each when ReconcileInterval
// has passed since it was last done, by whichever member.
func (m *member) reconciling(ctx context.Context) (stop func()) {
	if m.config.ReconcileInterval < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reconciler sync.WaitGroup
	reconciler.Add(1)
	go func() {
		defer reconciler.Done()
		partial := map[*source]reconcileState{}
		between := min(m.config.ReconcileInterval/20, time.Minute)
		for wait := between; ctx.Err() == nil; {
			pause(ctx, wait)
			wait = between
			left := map[*source]reconcileState{}
			for n := range m.held {
				if sh := m.held[n].Load(); sh != nil && sh.source.reconciliationIsDue() {
					if part, done := sh.source.reconcile(ctx, partial[sh.source]); !done {
						left[sh.source] = part
						if part.gaveWay {
							wait = min(between, comparePause)
						}
					}
				}
			}
			partial = left
		}
	}()
	return func() {
		cancel()
		reconciler.Wait()
	}
}

func (s *source) reconciliationIsDue() bool {
	at, _, may := s.sequencer.lastReconciliation()
	since := s.now().Sub(at)
	// A time in the future comes from a clock that was ahead. Ignore it.
	return may && s.sequencer.isHealthy() && (since >= s.config.ReconcileInterval || since < 0)
}

// sweepPart is how far a reconciliation came that an error ended.
type reconcileState struct {
	began   time.Time       // zero for one that has not begun
	rewinds uint64          // of the cursor, when it began
	gaveWay bool            // it ended because other shards are to have their turns
	recent  bool            // it compares what was written lately, not all aggregates
	at      eventlog.Cursor // of a recent one: it has compared what is before
	after   aggregate.ID    // of another one: the last aggregate that was compared
}

// sweepPage is a page of aggregates that was compared with positions.
type comparedPage struct {
	moved []*journal.Record // the last events of those beyond their positions, as far as the page shows
	rest  reconcileState    // where to continue
	pause time.Duration     // before the next one
}

// reconciliation lets every aggregate that is not where the journal is go on. It begins where the part
// before it ended, and returns where to continue after an error.
func (s *source) reconcile(ctx context.Context, part reconcileState) (rest reconcileState, done bool) {
	if _, rewinds, _ := s.sequencer.lastReconciliation(); part.began.IsZero() || part.rewinds != rewinds {
		part = s.beginReconciliation()
	}
	part.gaveWay = false
	slice := time.Now().Add(reconcileSlice)
	// A connection that hangs must not end all reconciliations.
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	hangs := time.AfterFunc(readTimeout, cancel)
	defer hangs.Stop()
	compare := s.compareAll
	if part.recent {
		compare = s.compareRecent
	}
	for page, err := range compare(reading, part) {
		hangs.Stop()
		if ctx.Err() != nil || s.isStopping() {
			return part, false
		}
		if err != nil {
			s.logger.Error("Cannot compare the journal with positions, will try again", err, watermill.LogFields{"shard": s.number})
			return part, false
		}
		if !s.awaitRoom(ctx) || !s.sequencer.isHealthy() {
			return part, false
		}
		s.sequencer.observe(page.moved, byReconciliation, 0)
		part = page.rest
		if time.Now().After(slice) {
			part.gaveWay = true
			return part, false
		}
		pause(ctx, min(page.pause, s.config.ReconcileInterval/100))
		hangs.Reset(readTimeout)
	}
	if part.recent { // spread the reconciliations of the shards over time
		part.began = part.began.Add(-rand.N(max(1, s.config.ReconcileInterval/10)))
	}
	s.sequencer.setReconciled(part.began, part.rewinds)
	return reconcileState{}, true
}

const week = 7 * 24 * time.Hour

// beginSweep decides what a reconciliation compares. Where the tail is by the time of writing, an event that
// is late is near its place, so a reconciliation reads the tail again, from ReconcileInterval before the last
// reconciliation on. So it finds what came since the last reconciliation and was late by less than ReconcileInterval. All
// aggregates are compared once a week, where the last reconciliation is not known, and where an operator
// asks for it; in other layouts always.
func (s *source) beginReconciliation() reconcileState {
	last, rewinds, _ := s.sequencer.lastReconciliation()
	part := reconcileState{began: s.now(), rewinds: rewinds}
	weekOf := func(t time.Time) time.Time { return t.Add(s.weekBegins()).Truncate(week) }
	if !s.raw.TailByWriteTime() || last.UnixMilli() <= 0 || last.After(part.began) || !weekOf(last).Equal(weekOf(part.began)) {
		return part
	}
	part.recent, part.at = true, eventlog.CursorAt(last.Add(-s.config.ReconcileInterval))
	return part
}

// weekBegins spreads the comparisons of all aggregates over the week, by group and shard.
func (s *source) weekBegins() time.Duration {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, s.key.Group.Name, "/", s.key.Topic, "/", s.number)
	return time.Duration(hash.Sum64() % uint64(week)) //nolint:gosec // less than a week
}

// compareAll compares all aggregates with positions.
func (s *source) compareAll(ctx context.Context, part reconcileState) iter.Seq2[comparedPage, error] {
	corrupt := func(err *journal.CorruptItemError) {
		s.stats.corrupt.Add(1)
		s.logger.Error("A head cannot be read; its aggregate is swept no further than the tail shows", err, watermill.LogFields{"shard": s.number})
	}
	return func(yield func(comparedPage, error) bool) {
		for page, err := range s.checkpoint.AggregateProgress(ctx, s.key, part.after, corrupt) {
			var moved []*journal.Record
			for _, progress := range page {
				moved = s.compare(ctx, moved, progress.Head.Aggregate, progress.Head.Version, progress.Position)
				part.after = progress.Head.Aggregate
			}
			if !yield(comparedPage{moved, part, comparePause}, err) || err != nil {
				return
			}
		}
	}
}

// beyondOfPage is how many aggregates of a page have their versions read, because the group is
// further than the page.
const beyondOfPage = 10

// compareRecent compares the aggregates with positions that the tail has from a cursor on.
func (s *source) compareRecent(ctx context.Context, part reconcileState) iter.Seq2[comparedPage, error] {
	return func(yield func(comparedPage, error) bool) {
		for more := true; more; {
			found, err := s.page(ctx, eventlog.TailQuery{
				AggregateType: s.topic, Shard: s.number, After: part.at, Until: part.began, NumbersOnly: true,
			})
			ends := map[aggregate.ID]uint64{}
			for _, r := range found.Records {
				ends[r.Aggregate] = max(ends[r.Aggregate], r.Number)
			}
			var positions map[aggregate.ID]uint64
			if err == nil {
				positions, err = s.checkpoint.Positions(ctx, s.key, slices.Collect(maps.Keys(ends)), false)
			}
			if err != nil {
				yield(comparedPage{}, err)
				return
			}
			var moved []*journal.Record
			beyond := 0
			for id, end := range ends {
				// Most of these have later events. Where the tables were restored it is nearly all.
				if end < positions[id] {
					if beyond++; beyond > beyondOfPage {
						continue
					}
				}
				moved = s.compare(ctx, moved, id, end, positions[id])
			}
			part.at, more = found.Next, found.More
			if !yield(comparedPage{moved, part, time.Duration(len(found.Records)) * recentPause / 1000}, nil) {
				return
			}
		}
	}
}

// compare adds an aggregate to those that have moved if its events go beyond its position.
func (s *source) compare(ctx context.Context, moved []*journal.Record, id aggregate.ID, end, position uint64) []*journal.Record {
	switch {
	case end > position:
		at := time.UnixMilli(s.sequencer.finalAt())
		return append(moved, &journal.Record{Aggregate: id, Number: end, WrittenAt: at})
	case end < position:
		s.checkBeyond(ctx, id, position)
	}
	return moved
}

// awaitRoom waits until handlers have caught up with what reconciliations have found, for a minute at most:
// the other shards are to be swept too.
func (s *source) awaitRoom(ctx context.Context) bool {
	patience := time.Now().Add(time.Minute)
	for !s.sequencer.hasRoom() {
		if ctx.Err() != nil || s.isStopping() || time.Now().After(patience) {
			return false
		}
		pause(ctx, comparePause)
	}
	return true
}

// checkBeyond complains of a group that is further than the aggregate, as after a restore of the
// journal from a backup: its next events would be dropped as duplicates.
func (s *source) checkBeyond(ctx context.Context, id aggregate.ID, position uint64) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	version, err := s.raw.Version(ctx, id)
	if err != nil || version >= position {
		return // the head was read before the position, or is gone
	}
	s.stats.beyond.Add(1)
	s.logger.Error("The group is further than the journal, so the aggregate's next events count as handled",
		errBeyond, watermill.LogFields{"aggregate_id": id.Value, "position": position, "version": version})
}

var errBeyond = errors.New("position beyond the last event: if the journal was restored, reset the group or the aggregate, see package groups")
