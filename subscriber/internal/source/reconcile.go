package source

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// comparePause is the pause between two pages of a comparison of all aggregates. A page has up to 1
// MB, so a comparison takes at most about 130 read units a second, plus those of positions.
// recentPause is the pause for each thousand events that are read again.
const (
	comparePause = time.Second
	recentPause  = 100 * time.Millisecond
)

// reconcileSlice is the time after which a reconciliation lets the other shards continue.
// visitSlice is the same for ReconcileSlice.
const (
	reconcileSlice = time.Minute
	visitSlice     = 5 * time.Second
)

// Reconcile reconciles the shards of a member, one after the other, each when ReconcileInterval has
// passed since its last reconciliation by any member. It returns when ctx ends.
func Reconcile(ctx context.Context, interval time.Duration, shards iter.Seq[*Source]) {
	partial := map[*Source]reconcileState{}
	between := min(interval/20, time.Minute)
	for wait := between; retry.Sleep(ctx, retry.Jitter(wait)); {
		wait = between
		left := map[*Source]reconcileState{}
		for s := range shards {
			if !s.reconciliationIsDue() {
				continue
			}
			if part, done := s.reconcile(ctx, partial[s], reconcileSlice); !done {
				left[s] = part
				if part.gaveWay {
					wait = min(between, comparePause)
				}
			}
		}
		partial = left
	}
}

// MustReconcile reports whether a visit must call ReconcileSlice.
func (s *Source) MustReconcile() bool {
	at, _, may := s.Sequencer.LastReconciliation()
	return may && s.ReconcileInterval >= 0 && s.isRegular(at, s.Now())
}

// ReconcileSlice reconciles the shard for a few seconds. It continues where an earlier call was
// interrupted, and returns where to continue, or nil.
func (s *Source) ReconcileSlice(ctx context.Context, from *storage.Reconciling) *storage.Reconciling {
	_, rewinds, _ := s.Sequencer.LastReconciliation()
	var part reconcileState
	if from != nil {
		part = reconcileState{began: from.Began, rewinds: rewinds, recent: from.Recent, at: from.At}
		if from.After != "" {
			part.after = aggregate.ID{Type: s.Key.Topic, Value: from.After}
		}
	}
	rest, done := s.reconcile(ctx, part, visitSlice)
	if done || rest.began.IsZero() {
		return nil
	}
	return &storage.Reconciling{Began: rest.began, Recent: rest.recent, At: rest.at, After: rest.after.Value}
}

func (s *Source) reconciliationIsDue() bool {
	now := s.Now()
	at, _, may := s.Sequencer.LastReconciliation()
	return may && s.Sequencer.IsHealthy() && (s.isRegular(at, now) || s.lag.isDue(now))
}

// isRegular reports whether a reconciliation is due because of the last one. A time in the future
// comes from a clock that was ahead.
func (s *Source) isRegular(last, now time.Time) bool {
	since := now.Sub(last)
	return since >= s.ReconcileInterval || since < 0
}

// reconcileState is the place at which a reconciliation was interrupted.
type reconcileState struct {
	began   time.Time      // zero if it has not begun
	rewinds uint64         // the number of rewinds of the cursor when it began
	gaveWay bool           // it was interrupted to let other shards continue
	early   bool           // it is early because of a lag, and does not count as a regular one
	recent  bool           // it compares what was written lately, not all aggregates
	at      storage.Cursor // if recent: the place up to which it has compared
	after   aggregate.ID   // otherwise: the last aggregate that it has compared
}

// comparedPage is a page of aggregates that was compared with positions.
type comparedPage struct {
	moved []*journal.Record // the last events of aggregates that are beyond their positions
	rest  reconcileState    // where to continue
	pause time.Duration     // the pause before the next page
}

// reconcile compares the journal with positions, and lets aggregates continue whose events go
// beyond their position. It begins where the last call was interrupted, and returns where to
// continue after an error, or when a time has passed.
func (s *Source) reconcile(ctx context.Context, part reconcileState, most time.Duration) (rest reconcileState, done bool) {
	if _, rewinds, _ := s.Sequencer.LastReconciliation(); part.began.IsZero() || part.rewinds != rewinds {
		part = s.beginReconciliation()
	}
	part.gaveWay = false
	slice := time.Now().Add(most)
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
			s.Logger.Error("Cannot compare the journal with positions, will try again", err, watermill.LogFields{"shard": s.Key.Number})
			return part, false
		}
		if !s.awaitRoom(ctx, most) || !s.Sequencer.IsHealthy() {
			return part, false
		}
		s.Sequencer.ObserveReconciled(page.moved)
		part = page.rest
		if time.Now().After(slice) {
			part.gaveWay = true
			return part, false
		}
		retry.Sleep(ctx, retry.Jitter(min(page.pause, s.ReconcileInterval/100)))
		hangs.Reset(readTimeout)
	}
	if part.early {
		s.Counters.Early.Add(1)
		s.lag.reconciled(part.began, s.earlyInterval())
		return reconcileState{}, true
	}
	// Spread the reconciliations of the shards over time.
	if part.recent {
		part.began = part.began.Add(-rand.N(max(1, s.ReconcileInterval/10)))
	}
	s.Sequencer.SetReconciled(part.began, part.rewinds)
	return reconcileState{}, true
}

const week = 7 * 24 * time.Hour

// beginReconciliation decides what a reconciliation compares. If the tail is in the order of
// writing, a late event appears near its place. So the tail is read again from ReconcileInterval
// before the last reconciliation on. This finds events that were written since then and were late
// by less than ReconcileInterval. All aggregates are compared once a week, if the time of the last
// reconciliation is not known, if an operator requests it, and always in other layouts.
func (s *Source) beginReconciliation() reconcileState {
	last, rewinds, _ := s.Sequencer.LastReconciliation()
	part := reconcileState{began: s.Now(), rewinds: rewinds}
	if !s.isRegular(last, part.began) {
		part.early, part.recent = true, true
		part.at = storage.CursorAt(part.began.Add(-3 * s.earlyInterval()))
		return part
	}
	weekOf := func(t time.Time) time.Time { return t.Add(s.weekBegins()).Truncate(week) }
	if !s.Journal.TailByWriteTime || last.UnixMilli() <= 0 || last.After(part.began) || !weekOf(last).Equal(weekOf(part.began)) {
		return part
	}
	part.recent, part.at = true, storage.CursorAt(last.Add(-s.ReconcileInterval))
	return part
}

// weekBegins spreads the comparisons of all aggregates over the week, by group and shard.
func (s *Source) weekBegins() time.Duration {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, s.Key.Group.Name, "/", s.Key.Topic, "/", s.Key.Number)
	return time.Duration(hash.Sum64() % uint64(week)) //nolint:gosec // less than a week
}

// compareAll compares all aggregates with positions.
func (s *Source) compareAll(ctx context.Context, part reconcileState) iter.Seq2[comparedPage, error] {
	corrupt := func(err *journal.CorruptItemError) {
		s.Counters.Corrupt.Add(1)
		s.Logger.Error("A head cannot be read; events of its aggregate are delivered only if the tail shows them", err, watermill.LogFields{"shard": s.Key.Number})
	}
	return func(yield func(comparedPage, error) bool) {
		for page, err := range s.Checkpoint.AggregateProgress(ctx, s.Key, part.after, corrupt) {
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

// beyondOfPage limits the aggregates of a page whose versions are read because the group's position
// is higher than the numbers on the page.
const beyondOfPage = 10

// compareRecent reads the tail after a cursor, and compares the aggregates that have events there
// with the positions of the group.
func (s *Source) compareRecent(ctx context.Context, part reconcileState) iter.Seq2[comparedPage, error] {
	return func(yield func(comparedPage, error) bool) {
		for more := true; more; {
			found, err := s.page(ctx, storage.TailQuery{
				AggregateType: s.Key.Topic, Shard: s.Key.Number, After: part.at, Until: part.began, NumbersOnly: true,
			})
			ends := map[aggregate.ID]uint64{}
			for _, r := range found.Records {
				ends[r.Aggregate] = max(ends[r.Aggregate], r.Number)
			}
			var positions map[aggregate.ID]uint64
			if err == nil {
				positions, err = s.Checkpoint.Positions(ctx, s.Key, slices.Collect(maps.Keys(ends)), false)
			}
			if err != nil {
				yield(comparedPage{}, err)
				return
			}
			var moved []*journal.Record
			beyond := 0
			for id, end := range ends {
				// Most of these have later events. After a restore of the tables, nearly all
				// positions are higher.
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

// compare adds an aggregate to those that must continue if its events go beyond its position.
func (s *Source) compare(ctx context.Context, moved []*journal.Record, id aggregate.ID, end, position uint64) []*journal.Record {
	switch {
	case end > position:
		at := time.UnixMilli(s.Sequencer.FinalAt())
		return append(moved, &journal.Record{Aggregate: id, Number: end, WrittenAt: at})
	case end < position:
		s.checkBeyond(ctx, id, position)
	}
	return moved
}

// awaitRoom waits until handlers have caught up with the events that reconciliations have found. It
// has a limit, because the other shards must be reconciled too, and a visit must end.
func (s *Source) awaitRoom(ctx context.Context, most time.Duration) bool {
	patience := time.Now().Add(most)
	for !s.Sequencer.HasRoom() {
		if ctx.Err() != nil || s.isStopping() || time.Now().After(patience) {
			return false
		}
		retry.Sleep(ctx, retry.Jitter(comparePause))
	}
	return true
}

// checkBeyond logs an error if the group's position is beyond the last event of an aggregate, as
// after a restore of the journal from a backup. The next events of the aggregate would be dropped
// as duplicates.
func (s *Source) checkBeyond(ctx context.Context, id aggregate.ID, position uint64) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	version, err := s.Journal.Version(ctx, id)
	if err != nil || version >= position {
		return // the head was read before the position, or the aggregate is gone
	}
	s.Counters.Beyond.Add(1)
	s.Logger.Error("The group's position is beyond the journal, so the aggregate's next events count as handled",
		errBeyond, watermill.LogFields{"aggregate_id": printable.Text(id.Value), "position": position, "version": version})
}

var errBeyond = errors.New("position beyond the last event: if the journal was restored, reset the group or the aggregate, see package groups")
