package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Applied gives the number of the last event of an aggregate that a group has applied, 0 for none: its position, strongly consistent. A projection stores it
// with its writes, so they are there. An event that was skipped ([Groups.Skipped]) counts as applied. Other handlers have acked the event, at least; their positions are stored up to
// subscriber.Config.CommitInterval later. It costs two read units; where the group has a start and no position yet also those of the baseline.
// Of a group with positions in a store of its own it costs one unit and a look there ([WithPositions]).
//
// Errors: [ErrNoGroup], [ErrElsewhere], [ErrCorrupt], those of the journal, the context's.
func (g *Groups) Applied(ctx context.Context, group string, id aggregate.ID) (uint64, error) {
	k := checkpoint.Key{Group: group, Topic: id.Type}
	number, err := g.applied(ctx, k, id)
	if err != nil {
		return 0, failed("read the position of", k, err)
	}
	return number, nil
}

func (g *Groups) applied(ctx context.Context, k checkpoint.Key, id aggregate.ID) (uint64, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	roster, err := g.roster(ctx, k) // each time, as the group may have been reset
	if err != nil {
		return 0, err
	}
	positions, err := g.positions(ctx, shardOf(k, roster, g.journal.Shard(id)), roster, []aggregate.ID{id}, true)
	if err != nil {
		return 0, err
	}
	if position, found := positions[id]; found {
		return position, nil
	}
	return g.baseline(ctx, id, roster.Start)
}

// WaitApplied waits until a group has applied an event of an aggregate, so that whoever has just written it reads their own write:
//
//	order, err := orders.Execute(ctx, id, Place(...))
//	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
//	err = groups.WaitApplied(ctx, "order-history", order.ID, order.Version)
//	// and then the query
//
// It looks at once, then after 10 ms, and less and less often up to each half second; a look costs what [Groups.Applied] does. An aggregate that is blocked, parked
// or of a group without members is waited for as long as ctx lasts, and so is a group that is not there yet, as while it is deployed for the first time.
// So give it a deadline.
//
// Errors: [ErrNotApplied] with the context's, and with [ErrNoGroup] where that is why; those of Applied. None of them says that the event will not be applied.
func (g *Groups) WaitApplied(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	k := checkpoint.Key{Group: group, Topic: id.Type}
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond), backoff.WithMaxElapsedTime(0),
	)
	var why error
	for {
		applied, err := g.applied(ctx, k, id)
		notYet := notApplied(group, id, number, applied)
		switch {
		case err == nil && applied >= number:
			return nil
		case err == nil:
			why = notYet
		case errors.Is(err, ErrNoGroup):
			why = fmt.Errorf("%w: %w", err, notYet)
		case ctx.Err() == nil:
			return failed("wait for", k, err)
		case why == nil:
			why = fmt.Errorf("%w: event %d of %s by group %q: the time was over during the first read", ErrNotApplied, number, id, group)
		}
		if !sleep(ctx, between.NextBackOff()) {
			return failed("wait for", k, fmt.Errorf("%w: %w", ctx.Err(), why))
		}
	}
}

// notApplied says how far a group is instead.
func notApplied(group string, id aggregate.ID, number, applied uint64) error {
	return fmt.Errorf("%w: event %d of %s by group %q, which is at %d: tell the reader that it will take longer, or look whether "+
		"the aggregate is blocked (Behind)", ErrNotApplied, number, id, group, applied)
}
