package subscriber

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/internal/sequence"
)

// source finds the events of a shard by the live read of its tail, by trailing reads, and by
// reconciliation, and passes them to the sequencer. One goroutine uses it, and another one runs
// reconciliations.
type source struct {
	*term
	sequencer *sequencer

	// live is the place up to which the live read has come.
	live     storage.Cursor
	trailing []trailingRead
	// polls contains the latest polls of the live read that reached the end of the tail.
	polls []endPoll
}

func newSource(t *term, q *sequencer) *source {
	return &source{term: t, sequencer: q, trailing: newTrailingReads(t.config.TrailingDelay)}
}

// run polls the tail from a time on, until the context ends.
func (s *source) run(ctx context.Context, from int64) {
	if from > 0 {
		s.setCursors(storage.Cursor{OccurredAt: from})
	}
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(beforeJitter(s.config.PollInterval)),
		backoff.WithMaxInterval(beforeJitter(s.config.MaxPollInterval)),
		backoff.WithRandomizationFactor(pollJitter),
		backoff.WithMaxElapsedTime(0),
	)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		found, err := s.poll(ctx)
		if err != nil && ctx.Err() == nil {
			s.logger.Error("Cannot read the tail of the journal, will try again", err, watermill.LogFields{"shard": s.number})
		}
		if found {
			between.Reset()
		}
		timer.Reset(between.NextBackOff())
	}
}

// pollJitter spreads the polls of shards over time. The longest pause, including jitter, is the
// interval.
const pollJitter = 0.1

func beforeJitter(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) / (1 + pollJitter))
}

// poll reads to the end of the tail, and runs the trailing reads that are due.
func (s *source) poll(ctx context.Context) (found bool, err error) {
	ahead := 0
	if !s.sequencer.IsCaughtUp() {
		ahead = s.budget.Page() // pages are full then, most likely
	}
	for {
		if !s.sequencer.AwaitHealth(s.stopping) {
			return found, nil
		}
		if err := s.budget.Reserve(ctx, ahead, s.lanes.Busy, s.sequencer.Trim); err != nil {
			return found, err
		}
		now := s.now()
		s.rewind(now)
		page, err := s.page(ctx, storage.TailQuery{
			AggregateType: s.topic, Shard: s.number, After: s.live,
			// An event that is dated far in the future must not move the cursor past events to
			// come.
			Until: now.Add(s.config.TrailingDelay),
			Limit: s.memory.PageEvents(),
		})
		s.budget.Release(ahead)
		if err != nil {
			return found, err
		}
		s.report(page.Corrupt)
		found = found || len(page.Records) > 0
		s.advance(page, now)
		s.noteTimes(page, now)
		// The events of one commit have the same time, and the index returns them in any order.
		slices.SortFunc(page.Records, func(a, b *journal.Record) int { return cmp.Compare(a.Number, b.Number) })
		s.sequencer.Enqueue(page.Records, !page.More, s.trail().OccurredAt)
		err = s.readTrailing(ctx, now, !page.More)
		if id, version, missed := s.sequencer.TakeMissed(); missed {
			s.noteLag(id, version)
		}
		if !page.More {
			return found, err
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Error("Cannot read the tail of the journal once more, will try again", err, watermill.LogFields{"shard": s.number})
		}
		ahead = s.budget.Page()
	}
}

// page reads a page with a time limit, so that a dead connection does not block the shard.
func (s *source) page(ctx context.Context, q storage.TailQuery) (storage.TailPage, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.raw.TailShard(ctx, q)
}

const readTimeout = 10 * time.Second

// report logs items of the tail that are no readable events. If the number of an item is known, its
// aggregate stops at that number until the item is repaired. Otherwise the aggregate stops at the
// gap.
func (s *source) report(corrupt []*journal.CorruptItemError) {
	for _, err := range corrupt {
		s.stats.corrupt.Add(1)
		s.logger.Error("An item of the journal is not an event that can be read", err, watermill.LogFields{"shard": s.number})
		if err.Number > 0 {
			// Its time may be corrupt, so use the time up to which the tail is final, which is
			// early enough.
			final := s.trail().OccurredAt
			s.sequencer.Observe([]*journal.Record{{
				Aggregate: err.Aggregate, Number: err.Number, WrittenAt: time.UnixMilli(final),
			}}, sequence.ByTail, final)
		}
	}
}
