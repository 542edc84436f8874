package subscriber

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// tail takes the shard over and looks at its tail until the context ends.
func (sh *shard) tail(ctx context.Context) {
	for {
		err := sh.start(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil || sh.fenced(err) {
			return
		}
		sh.logger.Error("Cannot take over a shard, will try again", err, watermill.LogFields{"shard": sh.number})
		pause(ctx, sh.config.MaxPollInterval)
	}
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(beforeJitter(sh.config.PollInterval)),
		backoff.WithMaxInterval(beforeJitter(sh.config.MaxPollInterval)),
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
		found, err := sh.look(ctx)
		if err != nil && ctx.Err() == nil {
			sh.logger.Error("Cannot read the tail of the journal, will try again", err, watermill.LogFields{"shard": sh.number})
		}
		if found {
			between.Reset()
		}
		timer.Reset(between.NextBackOff())
	}
}

// pollJitter keeps shards from being looked at all at once. With it a pause is the interval at
// most.
const pollJitter = 0.1

func beforeJitter(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) / (1 + pollJitter))
}

// look reads on to the end of the tail, and takes the trailing reads that are due.
func (sh *shard) look(ctx context.Context) (found bool, err error) {
	ahead := 0
	if !sh.isCaughtUp() {
		ahead = sh.budget.page() // it is full then, most likely
	}
	for {
		if err := sh.budget.reserve(ctx, ahead, sh.lanes.busy, sh.trim); err != nil {
			return found, err
		}
		now := sh.now()
		sh.turnBack(now)
		page, err := sh.page(ctx, eventlog.TailQuery{
			AggregateType: sh.topic, Shard: sh.number, After: sh.live,
			// A time far ahead must not drag the cursor past all that is to come.
			Until: now.Add(sh.config.TrailingDelay),
		})
		sh.budget.give(ahead)
		if err != nil {
			return found, err
		}
		sh.report(page.Corrupt)
		found = found || len(page.Records) > 0
		sh.advance(page, now)
		sh.noteTimes(page, now)
		// The events of one commit have one time, and the index returns them in any order.
		slices.SortFunc(page.Records, func(a, b *journal.Record) int { return cmp.Compare(a.Number, b.Number) })
		sh.offer(page.Records, !page.More)
		err = sh.readTrailing(ctx, now, !page.More)
		if !page.More {
			return found, err
		}
		if err != nil && ctx.Err() == nil {
			sh.logger.Error("Cannot read the tail of the journal once more, will try again", err, watermill.LogFields{"shard": sh.number})
		}
		ahead = sh.budget.page()
	}
}

// page bounds one read, so that a dead connection does not stall the shard.
func (sh *shard) page(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return sh.raw.TailShard(ctx, q)
}

const readTimeout = 10 * time.Second

// report logs items of the tail that are no records. Where an item still has its place, its
// aggregate hears of it and stops there until it is mended; else the gap stops it.
func (sh *shard) report(corrupt []*journal.CorruptItemError) {
	for _, err := range corrupt {
		sh.stats.corrupt.Add(1)
		sh.logger.Error("An item of the journal is not an event that can be read", err, watermill.LogFields{"shard": sh.number})
		if err.Number > 0 {
			// Its time may be what is corrupt. That of what is settled so far is early enough.
			sh.hear([]*journal.Record{{
				Aggregate: err.Aggregate, Number: err.Number, OccurredAt: time.UnixMilli(sh.trail().OccurredAt),
			}}, fromLive)
		}
	}
}
