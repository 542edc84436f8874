package subscriber

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// sweepPause is the time between two pages of a sweep, each up to 1 MB of heads: so a sweep takes
// at most some 130 read units a second, besides those of positions.
const sweepPause = time.Second

// sweeping compares heads with positions, one shard after the other, each when SweepInterval has
// passed since it was last done, by whichever member.
func (m *member) sweeping(ctx context.Context) (stop func()) {
	if m.config.SweepInterval < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var sweeper sync.WaitGroup
	sweeper.Add(1)
	go func() {
		defer sweeper.Done()
		partial := map[*source]sweepPart{}
		for ctx.Err() == nil {
			pause(ctx, min(m.config.SweepInterval/20, time.Minute))
			left := map[*source]sweepPart{}
			for n := range m.held {
				if sh := m.held[n].Load(); sh != nil && sh.source.sweepIsDue() {
					if part, done := sh.source.sweep(ctx, partial[sh.source]); !done {
						left[sh.source] = part
					}
				}
			}
			partial = left
		}
	}()
	return func() {
		cancel()
		sweeper.Wait()
	}
}

func (s *source) sweepIsDue() bool {
	at, _, may := s.sequencer.lastSweep()
	since := s.now().Sub(at)
	// A time in the future comes from a clock that was ahead. Ignore it.
	return may && s.sequencer.isHealthy() && (since >= s.config.SweepInterval || since < 0)
}

// sweepPart is how far a sweep came that an error ended.
type sweepPart struct {
	began time.Time    // zero for one that has not begun
	turns uint64       // of the cursor, when it began
	after aggregate.ID // the last aggregate that was compared
}

// sweep lets every aggregate that is not where its head is go on. It begins where the part before
// it ended, and returns where to continue after an error.
func (s *source) sweep(ctx context.Context, part sweepPart) (rest sweepPart, done bool) {
	if _, turns, _ := s.sequencer.lastSweep(); part.began.IsZero() || part.turns != turns {
		part = sweepPart{began: s.now(), turns: turns}
	}
	corrupt := func(err *journal.CorruptItemError) {
		s.stats.corrupt.Add(1)
		s.logger.Error("A head cannot be read; its aggregate is swept no further than the tail shows", err, watermill.LogFields{"shard": s.number})
	}
	// A connection that hangs must not end all sweeps.
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	hangs := time.AfterFunc(readTimeout, cancel)
	defer hangs.Stop()
	for standings, err := range s.checkpoint.Standings(reading, s.key, part.after, corrupt) {
		hangs.Stop()
		if ctx.Err() != nil || s.isStopping() {
			return part, false
		}
		if err != nil {
			s.logger.Error("Cannot compare heads with positions, will try again", err, watermill.LogFields{"shard": s.number})
			return part, false
		}
		if !s.awaitRoom(ctx) || !s.sequencer.isHealthy() {
			return part, false
		}
		var moved []*journal.Record
		at := time.UnixMilli(s.sequencer.finalAt())
		for _, standing := range standings {
			if standing.Position > standing.Head.Version {
				s.checkBeyond(ctx, standing.Head.Aggregate, standing.Position)
			}
			if standing.Head.Version > standing.Position {
				moved = append(moved, &journal.Record{Aggregate: standing.Head.Aggregate, Number: standing.Head.Version, WrittenAt: at})
			}
		}
		s.sequencer.hear(moved, bySweep, 0)
		if n := len(standings); n > 0 {
			part.after = standings[n-1].Head.Aggregate
		}
		pause(ctx, min(sweepPause, s.config.SweepInterval/100))
		hangs.Reset(readTimeout)
	}
	// Spread the sweeps of the shards over time.
	s.sequencer.setSwept(part.began.Add(-rand.N(max(1, s.config.SweepInterval/10))), part.turns)
	return sweepPart{}, true
}

// awaitRoom waits until handlers have caught up with what sweeps have found, for a minute at most:
// the other shards are to be swept too.
func (s *source) awaitRoom(ctx context.Context) bool {
	patience := time.Now().Add(time.Minute)
	for !s.sequencer.hasRoom() {
		if ctx.Err() != nil || s.isStopping() || time.Now().After(patience) {
			return false
		}
		pause(ctx, sweepPause)
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
