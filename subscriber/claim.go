package subscriber

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
)

// claim determines the group's position on the aggregate of a stream.
//
// If the subscriber stores the position, it is enough to read it. Positions only move forward, so a
// former owner can only store late what its handlers have acked. A transaction must be fenced,
// which takes a write. There are two kinds of them. One is a handler's transaction: once a shard
// has seen one, claim fences all positions. The other is the transaction in which a former owner
// skips or defers an event: if it arrived late, it would write a record of an event that was
// handled.
func (c *committer) claim(st *stream) error {
	ctx, cancel := context.WithTimeout(c.messageCtx, readTimeout)
	defer cancel()
	if c.untouched(st.ID) {
		return c.first(ctx, st, true)
	}
	if c.broadcast {
		if position, forgotten := c.sequencer.PositionOf(st.ID); forgotten {
			c.claimed(st, position, false)
			return nil
		}
		return c.baseline(ctx, st, false)
	}
	var position uint64
	var found bool
	var err error
	fences := c.fences()
	if fences {
		position, found, err = c.positionStore.Claim(ctx, c.group(), st.ID, c.epoch)
	} else {
		position, found, err = c.checkpoint.ReadPosition(ctx, c.key.Group, st.ID, c.epoch)
	}
	if err != nil {
		return err
	}
	c.stats.claims.Add(1)
	switch {
	case found:
		c.claimed(st, position, fences)
		return nil
	case !c.since.IsZero():
		return c.baseline(ctx, st, fences)
	}
	return c.first(ctx, st, fences)
}

// first begins an aggregate without a position with its first event, or with its last one as
// LatestOnly says. It does not store that events are left out: the position stays absent until an
// event was handled, so that no reader takes them for handled.
func (c *committer) first(ctx context.Context, st *stream, fenced bool) error {
	if !c.config.LatestOnly {
		c.claimed(st, 0, fenced)
		return nil
	}
	last, err := c.headNow(ctx, st.ID)
	if err != nil {
		return err
	}
	st.Work.position.fenced, st.Work.position.leftOut = fenced, max(last, 1)-1
	c.sequencer.Claimed(st, st.Work.position.leftOut)
	return nil
}

// fences reports whether claim must fence positions.
func (c *committer) fences() bool {
	return c.table == nil || c.commits.Load() || c.config.Failures.skips()
}

// claimWrites reports whether claim would write a row for an aggregate.
func (c *committer) claimWrites(id aggregate.ID) bool {
	return !c.broadcast && c.fences() && !c.untouched(id)
}

// hasMore reports whether an aggregate of which only a hint is known has events after the position
// of the group. It writes nothing, unlike a claim. With an external store of positions it reports
// whether the aggregate has any events.
func (c *committer) hasMore(id aggregate.ID) (bool, error) {
	ctx, cancel := context.WithTimeout(c.messageCtx, readTimeout)
	defer cancel()
	version, err := c.headNow(ctx, id)
	if err != nil || version == 0 || c.table == nil && !c.inRows {
		return version > 0, err
	}
	position, found, err := c.checkpoint.ReadPosition(ctx, c.key.Group, id, c.epoch)
	if err == nil && !found && !c.since.IsZero() {
		var head journal.Head
		if head, err = c.raw.Head(ctx, id); err == nil {
			position, err = c.checkpoint.Baseline(ctx, head, c.since)
		}
	}
	return version > position, err
}

func (c *committer) claimed(st *stream, position uint64, fenced bool) {
	st.Work.position.fenced = fenced
	st.Stored.Store(position)
	c.sequencer.Claimed(st, position)
}

// wentBack ends the term because a position is lower than the one that was stored: its row was
// deleted, or its store was restored. In the next term the group continues after the lower
// position. The events in between must not be left out.
func (c *committer) wentBack(st *stream, stored, position uint64) error {
	c.logger.Error("The position of an aggregate has gone back, so the shard starts again", errWentBack, watermill.LogFields{
		"shard": c.number, "aggregate_id": printable.Text(st.ID.Value), "stored": stored, "position": position,
	})
	return fmt.Errorf("%w: position on %s has gone back from %d to %d", ErrFenced, st.ID, stored, position)
}

var errWentBack = errors.New("the row of the position was deleted, or its store was restored to an earlier time")

// untouched reports that the position of an aggregate cannot have been stored: this is the first
// term of the shard, and the sequencer has not forgotten the stream. Then there is nothing to
// claim. This spares a new group that reads the whole history a request for each aggregate. A row
// of a read model may have a position from before a reset.
func (c *committer) untouched(id aggregate.ID) bool {
	if _, forgotten := c.sequencer.PositionOf(id); forgotten {
		return false
	}
	return c.fresh && (c.table != nil || c.group().Resets == 0) && c.since.IsZero() && !c.sequencer.HasForgotten(id)
}

// baseline determines where a group that starts at a time begins with an aggregate: after the last
// event before that time.
func (c *committer) baseline(ctx context.Context, st *stream, fenced bool) error {
	head, err := c.raw.Head(ctx, st.ID)
	if errors.Is(err, journal.ErrNotFound) {
		c.claimed(st, 0, fenced)
		return nil
	}
	if err != nil {
		return err
	}
	before, err := c.checkpoint.Baseline(ctx, head, c.since)
	if err != nil {
		return err
	}
	st.Work.position.fenced, st.Work.position.begins = fenced, true
	c.sequencer.Claimed(st, before)
	return nil
}

// storeBaseline stores the baseline before the first delivery. Otherwise a later event with an
// earlier time would change it. An aggregate without newer events costs no write.
func (c *committer) storeBaseline(st *stream) error {
	if err := st.Work.position.own(c.messageCtx); err != nil {
		return err
	}
	defer st.Work.position.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.messageCtx, writeTimeout)
	defer cancel()
	if err := c.resolve(ctx, st); err != nil {
		return err
	}
	begin, stored := c.sequencer.AckedOf(st), st.Stored.Load()
	if stored == 0 || stored < begin {
		var err error
		if stored, err = c.store(ctx, st, stored, begin); err != nil {
			return err
		}
	}
	st.Work.position.begins = false
	c.sequencer.Clean(st, stored)
	return nil
}

// takeOver reads the version of an aggregate that a former owner has listed as behind. The cursor
// has passed its later events, so only the version shows them. The caller has claimed its position.
func (c *committer) takeOver(st *stream) error {
	ctx, cancel := context.WithTimeout(c.messageCtx, readTimeout)
	defer cancel()
	head, err := c.headNow(ctx, st.ID)
	if err != nil {
		return err
	}
	c.sequencer.TookOver(st, head)
	return nil
}

// headNow returns the number of an aggregate's last event.
func (s *subscription) headNow(ctx context.Context, id aggregate.ID) (uint64, error) {
	version, err := s.raw.Version(ctx, id)
	var deleted *journal.DeletedError
	switch {
	case errors.As(err, &deleted):
		return deleted.Version, nil
	case errors.Is(err, journal.ErrNotFound):
		return 0, nil
	default:
		return version, err
	}
}

// verifyAtOnce is the number of parked aggregates that verifyParked verifies. It takes one request
// if the positions are in DynamoDB.
const verifyAtOnce = 100

// verifyParked checks some parked aggregates. It finds those whose position is at or after the
// event because of which they were parked. A former owner may have parked such an aggregate late,
// without knowing that another member had handled the event. verifyParked reports whether there may
// be more to verify now.
func (c *committer) verifyParked(ctx context.Context) (more bool) {
	some := c.sequencer.TakeUnverified(verifyAtOnce)
	if len(some) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	positions, err := c.positions(ctx, some)
	if c.isStopping() {
		return false
	}
	c.failed("Cannot verify which aggregates are parked, will try again", []error{err})
	c.sequencer.Verify(some, positions)
	return err == nil
}

// positions reads the positions of some streams. It returns those that it could read, and an error
// for the others.
func (c *committer) positions(ctx context.Context, streams []*stream) (map[aggregate.ID]uint64, error) {
	positions := make(map[aggregate.ID]uint64, len(streams))
	if c.table != nil || c.inRows {
		ids := make([]aggregate.ID, len(streams))
		for i, st := range streams {
			ids[i] = st.ID
		}
		found, err := c.checkpoint.Positions(ctx, c.key, ids, true)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			positions[id] = found[id] // 0 if there is none
		}
		return positions, nil
	}
	claimed := make([]uint64, len(streams))
	claims := make([]func() error, len(streams))
	for i, st := range streams {
		claims[i] = func() (err error) {
			claimed[i], _, err = c.positionStore.Claim(ctx, c.group(), st.ID, c.epoch)
			return err
		}
	}
	errs := c.inParallel(claims)
	for i, st := range streams {
		if errs[i] == nil {
			positions[st.ID] = claimed[i]
		}
	}
	return positions, errors.Join(errs...)
}
