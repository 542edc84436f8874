package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Position returns the position of a group in an aggregate: the number of the last event that the
// group has applied, 0 for none. It reads strongly consistently. A skipped event ([Group.Skipped])
// counts as applied.
//
// A projection stores the position together with its writes, so the writes of the event are
// visible. Events without writes, and events of other handlers, count when the subscriber stores
// positions: up to subscriber.Timing.CommitInterval (default: 1 second) after the ack.
//
// It costs two read units. It costs some more reads if the group has a start and no position in the
// aggregate yet. For external positions it costs one unit and a read of their store
// ([WithPositions]).
//
// Errors: [ErrNoGroup], [ErrExternalPositions], [ErrCorrupt], and the errors of the journal and the
// context.
func (g *Groups) Position(ctx context.Context, group string, id aggregate.ID) (uint64, error) {
	one := g.Of(group, id.Type)
	number, err := one.applied(ctx, id)
	if err != nil {
		return 0, one.failed("read the position of", err)
	}
	return number, nil
}

func (g *Group) applied(ctx context.Context, id aggregate.ID) (uint64, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	membership, err := g.membership(ctx) // read each time, since the group may have been reset
	if err != nil {
		return 0, err
	}
	positions, err := g.positions(ctx, shardOf(g.key, membership, g.journal.Shard(id)), membership, []aggregate.ID{id}, true)
	if err != nil {
		return 0, err
	}
	if position, found := positions[id]; found {
		return position, nil
	}
	return g.baseline(ctx, id, membership.Start)
}

// WaitApplied waits until a group has applied an event of an aggregate, so that a caller can read
// its own write:
//
//	order, err := orders.Execute(ctx, id, Place(...))
//	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
//	err = groups.WaitApplied(ctx, "order-history", order.ID, order.Version)
//	// then query the read model
//
// It reads the position at once, then after 10 ms, and then at growing intervals of up to half a
// second. Each read costs what [Groups.Position] costs. If the aggregate is blocked or parked, if
// the group has no members, or if the group does not exist yet, it waits until ctx ends. So pass a
// context with a deadline. If the group exists, but does not join the aggregate's topic within a
// second, it returns a [*NoTopicError].
//
// An event without writes counts as applied when the subscriber next stores positions, within
// subscriber.Timing.CommitInterval (default: 1 second). Lower it if callers wait for such events.
//
// Errors: [ErrNotApplied] with the error of the context, and with [ErrNoGroup] if the group does
// not exist; [*NoTopicError]; those of [Groups.Position]. None of these errors means that the event
// will never be applied.
func (g *Groups) WaitApplied(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	return g.wait(ctx, group, id, number, false)
}

// wait is WaitApplied. With mayLack it returns nil if the group has other topics than that of the
// aggregate.
func (g *Groups) wait(ctx context.Context, group string, id aggregate.ID, number uint64, mayLack bool) error {
	one := g.Of(group, id.Type)
	between := retry.Pauses(10*time.Millisecond, 500*time.Millisecond, 0)
	var why error
	var lacking time.Time // when the group was seen first on other topics only
	for {
		applied, err := one.applied(ctx, id)
		if errors.Is(err, ErrNoGroup) {
			topics, failure := g.Topics(ctx, group)
			switch {
			case failure != nil:
				err = failure
			case len(topics) == 0 || slices.Contains(topics, id.Type): // it may begin later
			case mayLack:
				return nil
			case lacking.IsZero():
				lacking = time.Now()
			case time.Since(lacking) >= joining:
				return one.failed("wait for", &NoTopicError{Group: group, Topic: id.Type, Topics: topics})
			}
		}
		notYet := notApplied(group, id, number, applied)
		switch {
		case err == nil && applied >= number:
			return nil
		case err == nil:
			why = notYet
		case errors.Is(err, ErrNoGroup):
			why = fmt.Errorf("%w: %w", err, notYet)
		case ctx.Err() == nil:
			return one.failed("wait for", err)
		case why == nil:
			why = fmt.Errorf("%w: event %d of %s by group %q: the context ended during the first read", ErrNotApplied, number, id, group)
		}
		if !retry.Sleep(ctx, between.NextBackOff()) {
			return one.failed("wait for", fmt.Errorf("%w: %w", ctx.Err(), why))
		}
	}
}

// joining is the time that a group has to join its topics one after the other.
const joining = time.Second

// WaitToken waits until a group has applied all events that a consistency token names. It calls
// [Groups.WaitApplied] for each aggregate of the token, except for aggregates of topics that the
// group has not joined. If no topic has the group, it waits as WaitApplied does, because the group
// may begin later. A token comes from a client, so pass a context with a deadline.
//
// If you know the topics of the group, call WaitApplied for each aggregate of aggregate.Token.Of
// instead, as millrace.App.Consistent does. WaitToken does not wait for events of a topic that the
// group has yet to join, for example when a release that adds the topic starts for the first time.
//
// A token that is applied costs two read units for each aggregate, and ParseToken accepts up to 100
// of them. consistency.Config has a limit. A topic that the group has not joined costs one read
// unit, and one for about 40 groups of the journal.
//
// Errors: those of WaitApplied.
func (g *Groups) WaitToken(ctx context.Context, group string, token aggregate.Token) error {
	for _, v := range token {
		if v.Version == 0 { // nothing was written
			continue
		}
		if err := g.wait(ctx, group, v.ID, v.Version, true); err != nil {
			return err
		}
	}
	return nil
}

// notApplied returns an ErrNotApplied with the position of the group.
func notApplied(group string, id aggregate.ID, number, applied uint64) error {
	return fmt.Errorf("%w: event %d of %s by group %q, which is at %d: retry later, or check whether the aggregate "+
		"is blocked (Group.Lag with LagOptions.Behind)", ErrNotApplied, number, id, group, applied)
}
