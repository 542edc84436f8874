package groups

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// To is where a group begins again.
type To struct {
	now bool
	at  time.Time
}

// Beginning is the first event of every aggregate.
func Beginning() To { return To{} }

// Now leaves out all events that have occurred.
func Now() To { return To{now: true} }

// At leaves out the events that occurred before a time, in milliseconds. Times are the events' occurred_at.
func At(t time.Time) To { return To{at: t.Truncate(time.Millisecond)} }

func (t To) time(now time.Time) time.Time {
	if t.now {
		return now.Truncate(time.Millisecond)
	}
	return t.at
}

// Reset has a group begin again, and forgets where it was: its positions, cursors, and what was parked or skipped. A paused group stays
// paused, and one that was stopped (subscriber.Stop) is a paused one then. It is done with one write, which makes a new generation, and works then whatever comes after; what takes time
// is the deletion of the earlier generations' rows that follows, see [Groups.CleanUp]. Progress, if not nil, is told how many rows
// each request deleted.
//
// Members may be at work. Until they learn of it, within a quarter of subscriber.Config.LeaseDuration, they go on with the earlier
// generation, so that for so long an event of an aggregate can come beside those from its beginning, and an effect may still
// commit with its position of the earlier generation. Where that matters, for instance because a read model is cleared, pause the
// group and wait until it is idle first.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's; with [ErrLeftovers] the group was reset.
func (g *Groups) Reset(ctx context.Context, group, topic string, to To, progress func(rows int)) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	start := to.time(g.journal.Config().Now())
	_, err := g.store.ModifyRoster(ctx, k, func(r checkpoint.Roster) (checkpoint.Roster, error) { return r.Reset(start), nil })
	if err != nil {
		return failed("reset", k, err)
	}
	if err := g.CleanUp(ctx, group, topic, progress); err != nil {
		return failed("reset", k, fmt.Errorf("%w: %w", ErrLeftovers, err))
	}
	return nil
}

// CleanUp deletes what earlier generations of a group have left. It is for after a [Groups.Reset] that ended early, and may be
// repeated. It costs one read unit for some 40 rows, at least for each shard and earlier generation, and one write unit for each
// row: one for each aggregate that the group had a position on, and one or two for each record of a skipped event. A few shards are cleaned up side by side, with 25 rows under way in each.
//
// What members write before they learn of a reset may come after it, and stays until the next CleanUp.
//
// Errors: [ErrNoGroup], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) CleanUp(ctx context.Context, group, topic string, progress func(rows int)) error {
	k := checkpoint.Key{Group: group, Topic: topic}
	roster, err := g.roster(ctx, k)
	if err == nil {
		err = g.removeGenerations(ctx, k, roster.Generation, progress)
	}
	if err != nil {
		return failed("clean up after", k, err)
	}
	return nil
}

// removers is how many shards are removed side by side: so few that live traffic does not starve.
const removers = 4

// removeGenerations deletes the rows of the generations below one.
func (g *Groups) removeGenerations(ctx context.Context, k checkpoint.Key, below uint64, progress func(rows int)) error {
	var mu sync.Mutex
	report := func(rows int) {
		mu.Lock()
		defer mu.Unlock()
		if progress != nil {
			progress(rows)
		}
	}
	for generation := range below {
		err := inParallel(removers, g.journal.Shards(), func(number int) error {
			return g.store.RemoveShard(ctx, shardOf(k, checkpoint.Roster{Generation: generation}, number), report)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
