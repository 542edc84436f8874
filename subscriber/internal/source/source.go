// Package source finds the events of a shard of a journal.
package source

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/internal/sequence"
)

// Source finds the events of a shard by the live read of its tail, by trailing reads, and by
// reconciliation, and passes them to the sequencer. One goroutine reads, another one runs
// reconciliations, and workers call NoteLag.
type Source struct {
	Config
	lag lag

	// live is the place up to which the live read has come.
	live     storage.Cursor
	trailing []trailingRead
	// polls contains the latest polls of the live read that reached the end of the tail.
	polls []endPoll
}

// Config is what a source needs. The durations are those of subscriber.Config.
type Config struct {
	Journal    *engine.Engine // it reads records without decoding them
	Checkpoint *checkpoint.Store
	Key        checkpoint.Shard
	Sequencer  Sequencer
	Budget     *sequence.Budget
	Memory     *sequence.Memory
	Counters   *Counters
	Logger     watermill.LoggerAdapter

	PollInterval, MaxPollInterval, TrailingDelay, ReconcileInterval time.Duration

	Busy     func() bool     // reports whether all workers are serving
	Stopping <-chan struct{} // closed when the work on the shard ends
}

// Sequencer is what a source says to the sequencer of its shard, and asks it. Its methods are
// documented in package sequence.
type Sequencer interface {
	Needs(id aggregate.ID, first, last uint64) bool
	Enqueue(records []*journal.Record, caughtUp bool, final int64, unread ...*journal.Record)
	ObserveTail(records []*journal.Record, final int64) (missed []*journal.Record)
	ObserveReconciled(records []*journal.Record)
	Rewind(to int64)
	SetReconciled(at time.Time, rewinds uint64)
	Trim()

	AwaitHealth(stopping <-chan struct{}) bool
	IsHealthy() bool
	IsCaughtUp() bool
	HasRoom() bool
	FinalAt() int64
	LastReconciliation() (at time.Time, rewinds uint64, may bool)
	TakeMissed() (id aggregate.ID, version uint64, missed bool)
	TakeUnannounced() (count uint64)
	WantsPoll() <-chan struct{}
}

// Counters counts what the sources of a subscriber have found. See subscriber.Stats.
type Counters struct {
	Late, Early, Beyond, Corrupt, Unannounced atomic.Uint64
	skew                                      skew
}

// Skew returns the longest delays that were measured: of events that appeared late, and of events
// that were dated in the future.
func (c *Counters) Skew() (late, ahead time.Duration) { return c.skew.read() }

// New returns a source that has read nothing yet.
func New(c Config) *Source {
	return &Source{Config: c, trailing: newTrailingReads(c.TrailingDelay)}
}

// Now returns the time by the clock that dates events.
func (s *Source) Now() time.Time { return s.Journal.Config.Now() }

func (s *Source) isStopping() bool {
	select {
	case <-s.Stopping:
		return true
	default:
		return false
	}
}

// Run polls the tail from a time on, until the context ends.
func (s *Source) Run(ctx context.Context, from int64) {
	if from > 0 {
		s.setCursors(storage.Cursor{OccurredAt: from})
	}
	pauses := newPauses(s.PollInterval, s.MaxPollInterval)
	for next := time.Now(); ; {
		timer := time.NewTimer(max(time.Until(next), retry.Soon))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.Sequencer.WantsPoll():
			timer.Stop()
			pauses.Reset()
			next = earlier(next, time.Now().Add(pauses.next(0)))
			continue
		case <-timer.C:
		}
		found, err := s.poll(ctx)
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("Cannot read the tail of the journal, will try again", err, watermill.LogFields{"shard": s.Key.Number})
		}
		s.noteUnannounced()
		if found {
			pauses.Reset()
		}
		next = time.Now().Add(pauses.next(s.Journal.RarePoll()))
	}
}

// Pass reads the tail from a time on to its end. What it has read is final up to the last trailing
// delay before now, so trailing reads are not necessary.
func (s *Source) Pass(ctx context.Context, from int64) error {
	if from > 0 {
		s.setCursors(storage.Cursor{OccurredAt: from})
	}
	now := s.Now()
	if _, err := s.poll(ctx); err != nil {
		return err
	}
	if !s.Sequencer.IsCaughtUp() {
		return nil // it is not healthy
	}
	for i := range s.trailing {
		r := &s.trailing[i]
		if horizon := now.Add(-r.delay); r.at.OccurredAt < horizon.UnixMilli() {
			r.at = storage.CursorAt(horizon)
		}
	}
	s.Sequencer.ObserveTail(nil, s.trail().OccurredAt)
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// noteUnannounced restores normal polling if the tail has shown events that no hint has announced.
func (s *Source) noteUnannounced() {
	count := s.Sequencer.TakeUnannounced()
	if count == 0 {
		return
	}
	s.Counters.Unannounced.Add(count)
	s.Journal.DistrustHints()
	s.Logger.Info("No wake-up has announced some events of other processes, so polling is normal for 5 minutes: does each process that commits send wake-ups?",
		watermill.LogFields{"shard": s.Key.Number, "aggregates": count})
}

// pauses are the pauses between polls. They grow while there are no new events.
type pauses struct {
	*backoff.ExponentialBackOff
	most time.Duration // the maximum interval while polling is normal
}

func newPauses(least, most time.Duration) *pauses {
	return &pauses{backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(beforeJitter(least)),
		backoff.WithMaxInterval(beforeJitter(most)),
		backoff.WithRandomizationFactor(pollJitter),
		backoff.WithMaxElapsedTime(0),
	), most}
}

// next returns the next pause. rare is the maximum interval while polling is rare, or 0. Jitter
// makes a rare pause up to a tenth longer.
func (p *pauses) next(rare time.Duration) time.Duration {
	interval := max(rare, beforeJitter(p.most))
	if interval < p.MaxInterval {
		p.Reset() // polling is normal again
	}
	p.MaxInterval = interval
	return p.NextBackOff()
}

// pollJitter spreads the polls of shards over time. The longest pause, including jitter, is the
// interval.
const pollJitter = 0.1

func beforeJitter(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) / (1 + pollJitter))
}

// poll reads to the end of the tail, and runs the trailing reads that are due.
func (s *Source) poll(ctx context.Context) (found bool, err error) {
	ahead := 0
	if !s.Sequencer.IsCaughtUp() {
		ahead = s.Budget.Page() // pages are full then, most likely
	}
	for {
		if !s.Sequencer.AwaitHealth(s.Stopping) {
			return found, nil
		}
		if err := s.Budget.Reserve(ctx, ahead, s.Busy, s.Sequencer.Trim); err != nil {
			return found, err
		}
		now := s.Now()
		s.rewind(now)
		page, err := s.page(ctx, storage.TailQuery{
			AggregateType: s.Key.Topic, Shard: s.Key.Number, After: s.live,
			// An event that is dated far in the future must not move the cursor past events to
			// come.
			Until: now.Add(s.TrailingDelay),
			Limit: s.Memory.PageEvents(),
			Needs: s.Sequencer.Needs,
		})
		s.Budget.Release(ahead)
		if err != nil {
			return found, err
		}
		s.report(page.Corrupt)
		found = found || len(page.Records)+len(page.Unread) > 0
		s.advance(page, now)
		s.noteTimes(page, now)
		// The events of one commit have the same time, and the index returns them in any order.
		slices.SortFunc(page.Records, func(a, b *journal.Record) int { return cmp.Compare(a.Number, b.Number) })
		s.Sequencer.Enqueue(page.Records, !page.More, s.trail().OccurredAt, page.Unread...)
		err = s.readTrailing(ctx, now, !page.More)
		if id, version, missed := s.Sequencer.TakeMissed(); missed {
			s.NoteLag(id, version)
		}
		if !page.More {
			return found, err
		}
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("Cannot read the tail of the journal once more, will try again", err, watermill.LogFields{"shard": s.Key.Number})
		}
		ahead = s.Budget.Page()
	}
}

// page reads a page with a time limit, so that a dead connection does not block the shard.
func (s *Source) page(ctx context.Context, q storage.TailQuery) (storage.TailPage, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.Journal.TailShard(ctx, q)
}

const readTimeout = 10 * time.Second

// report logs items of the tail that are no readable events. If the number of an item is known, its
// aggregate stops at that number until the item is repaired. Otherwise the aggregate stops at the
// gap.
func (s *Source) report(corrupt []*journal.CorruptItemError) {
	for _, err := range corrupt {
		s.Counters.Corrupt.Add(1)
		s.Logger.Error("An item of the journal is not an event that can be read", err, watermill.LogFields{"shard": s.Key.Number})
		if err.Number > 0 {
			// Its time may be corrupt, so use the time up to which the tail is final, which is
			// early enough.
			final := s.trail().OccurredAt
			s.Sequencer.ObserveTail([]*journal.Record{{
				Aggregate: err.Aggregate, Number: err.Number, WrittenAt: time.UnixMilli(final),
			}}, final)
		}
	}
}
