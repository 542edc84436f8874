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

// Applied returns the number of the last event of an aggregate that a group has applied, 0 for
// none: its position, strongly consistent. A projection stores the position with its writes, so
// they are there. A skipped event ([Groups.Skipped]) counts as applied. An event that a projection
// has no reaction to, and any event of another handler, counts only after the subscriber has stored
// positions, up to subscriber.Config.CommitInterval (default: 1 second) after the ack.
//
// It costs two read units. If the group has a start and no position yet, it also costs those of the
// baseline. If the group has positions in a store of its own, it costs one unit and a read there
// ([WithPositions]).
//
// Errors: [ErrNoGroup], [ErrExternalPositions], [ErrCorrupt], those of the journal, the context's.
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

// WaitApplied waits until a group has applied an event of an aggregate, so that a caller reads its
// own write:
//
//	order, err := orders.Execute(ctx, id, Place(...))
//	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
//	err = groups.WaitApplied(ctx, "order-history", order.ID, order.Version)
//	// and then the query
//
// It reads the position at once, then after 10 ms, and then less and less often, up to every half
// second. Each read costs what [Groups.Applied] does. It waits until ctx ends if the aggregate is
// blocked or parked, if the group has no members, or if the group does not exist yet. So pass a
// context with a deadline.
//
// An event that the projection has no reaction to counts as applied only when the subscriber next
// stores positions, within subscriber.Config.CommitInterval (default: 1 second). Lower it if
// callers wait for such events.
//
// Errors: [ErrNotApplied] with the context's, and with [ErrNoGroup] if the group does not exist;
// those of Applied. No error means that the event will never be applied.
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

// WaitToken waits until a group has applied all that a consistency token names, as
// [Groups.WaitApplied] does for one aggregate. A token comes from a client: pass a context with a
// deadline, and, if the group does not have all of the topics, the part of the token that it has
// (aggregate.Token.Of).
//
// Errors: those of WaitApplied.
func (g *Groups) WaitToken(ctx context.Context, group string, token aggregate.Token) error {
	for _, v := range token {
		if v.Version == 0 { // nothing was written
			continue
		}
		if err := g.WaitApplied(ctx, group, v.ID, v.Version); err != nil {
			return err
		}
	}
	return nil
}

// notApplied says how far a group is instead.
func notApplied(group string, id aggregate.ID, number, applied uint64) error {
	return fmt.Errorf("%w: event %d of %s by group %q, which is at %d: retry later, or check whether the aggregate "+
		"is blocked (Groups.Lag with LagOptions.Behind)", ErrNotApplied, number, id, group, applied)
}
