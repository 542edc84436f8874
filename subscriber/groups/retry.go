package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber"
)

// RetrySkipped makes the group retry an event that it has skipped or deferred, at once and
// independently of the aggregate's other events. Attempts are counted from the start, with the
// Backoff of subscriber.Defer, or with its defaults if members have another policy.
//
// The message of the event has no position. So handlers that need positions, such as projections,
// return an error for it. Use [Groups.ResetAggregate] for such handlers.
//
// It takes the aggregate's logical shard from its owner for a moment, as an edit does. It costs up
// to six read units and five write units.
//
// Errors: [ErrNotSkipped], [ErrExternalPositions], [ErrNoGroup], [ErrCorrupt],
// subscriber.ErrFenced, and the errors of the journal and the context. It can be repeated after an
// error.
func (g *Groups) RetrySkipped(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	err := id.Validate()
	if err == nil {
		err = g.Of(group, id.Type).retrySkipped(ctx, id, number)
	}
	if err != nil {
		return fmt.Errorf("retry event %d of %s for consumer group %q: %w", number, id, group, err)
	}
	return nil
}

func (g *Group) retrySkipped(ctx context.Context, id aggregate.ID, number uint64) error {
	membership, err := g.membership(ctx)
	if err != nil {
		return err
	}
	// This check comes before the shard is taken, so that a wrong number causes no takeover.
	_, found, err := g.store.ReadSkipped(ctx, shardOf(g.key, membership, 0).Group, id, number)
	if err == nil && !found {
		err = ErrNotSkipped
	}
	if err != nil {
		return err
	}
	return again(ctx, func() error {
		return g.store.Operate(ctx, g.key, g.journal.Shard(id), func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
			if err := (edit{external: r.ExternalPositions}).own(); err != nil {
				return err
			}
			record, found, err := g.store.ReadSkipped(ctx, shard.Group, id, number)
			if err == nil && !found {
				err = ErrNotSkipped
			}
			if err != nil {
				return err
			}
			return g.makeDue(ctx, shard, r.Epochs[shard.Number], record)
		})
	})
}

// RetryAllSkipped makes the group retry all selected events that it has skipped or deferred, as
// [Groups.RetrySkipped] does for one. It returns the number of events, also with an error.
//
// It makes the records of a logical shard due, and then takes the shard from its owner for a
// moment. Throttled requests are repeated with backoff. After an error call it again for all:
// events that were handled meanwhile have no record any more.
//
// It costs one write unit for each event, and more if the record is over 1 KB; two for each shard
// with selected events; and one read unit for about 20 records.
//
// Errors: [ErrExternalPositions], [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced, and the errors
// of the journal and the context.
func (g *Group) RetryAllSkipped(ctx context.Context, s Selection) (int, error) {
	membership, err := g.membership(ctx)
	if err == nil {
		err = edit{external: membership.ExternalPositions}.own()
	}
	count := 0
	for number := 0; err == nil && number < g.journal.Config.Shards; number++ {
		var edited int
		edited, err = g.makeAllDue(ctx, shardOf(g.key, membership, number), s)
		if count += edited; edited > 0 {
			err = errors.Join(err, g.handOver(ctx, number))
		}
	}
	if err != nil {
		return count, g.failed("retry skipped events of", err)
	}
	return count, nil
}

// handOver takes a shard from its owner and frees it. The next owner reads the records.
func (g *Group) handOver(ctx context.Context, number int) error {
	return again(ctx, func() error {
		return g.store.Operate(ctx, g.key, number, func(context.Context, checkpoint.Shard, checkpoint.Membership) error { return nil })
	})
}

// selects reports whether a record matches the selection.
func (s Selection) selects(e checkpoint.Skipped) bool {
	return strings.Contains(e.Reason, s.Reason) && s.isBefore(e.At) && (s.EventType == "" || s.EventType == e.EventType)
}

// makeAllDue makes the selected records of a shard due, several in parallel.
func (t tables) makeAllDue(ctx context.Context, shard checkpoint.Shard, s Selection) (count int, err error) {
	var some []checkpoint.Skipped
	flush := func() error {
		err := inParallel(writers, len(some), func(i int) error { return t.makeDue(ctx, shard, some[i].Epoch, some[i]) })
		if err != nil {
			return err
		}
		for _, e := range some {
			if count++; s.Edited != nil {
				s.Edited(e.Aggregate, e.Number)
			}
		}
		some = some[:0]
		return nil
	}
	for e, err := range t.store.Skipped(ctx, shard) {
		if err != nil {
			return count, err
		}
		if !s.selects(e) {
			continue
		}
		if some = append(some, e); len(some) == retriedAtOnce {
			if err := flush(); err != nil {
				return count, err
			}
		}
	}
	return count, flush()
}

// retriedAtOnce is the maximum number of records in memory.
const retriedAtOnce = 100

// makeDue makes a record due now. It writes the record under the given epoch or the record's epoch,
// whichever is later. A record that does not exist any more is not an error: its event was handled,
// or an operator has deleted the record.
func (t tables) makeDue(ctx context.Context, shard checkpoint.Shard, epoch uint64, was checkpoint.Skipped) error {
	for attempt := 1; ; attempt++ {
		now := was
		now.Epoch, now.Due, now.Attempts = max(epoch, was.Epoch), t.journal.Config.Now().Truncate(time.Millisecond), 0
		err := patiently(ctx, func() error { return t.store.Reschedule(ctx, shard.Group, was, now) })
		if !errors.Is(err, subscriber.ErrFenced) || attempt == editAttempts {
			return err
		}
		// An owner has tried the event meanwhile.
		changed, found, readErr := t.store.ReadSkipped(ctx, shard.Group, was.Aggregate, was.Number)
		if readErr != nil || !found {
			return readErr
		}
		was = changed
	}
}
