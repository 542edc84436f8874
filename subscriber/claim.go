package subscriber

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// claim finds out where the group is with a stream.
//
// To read the position is enough where the subscriber stores it: positions move forward only, so
// what a former owner stores late is what its handlers have acked. A transaction has to be fenced,
// which is a write: that of a handler, once one was seen in the shard, and that in which a former
// owner skips or defers an event, whose record would be of an event that is handled.
func (c *committer) claim(st *stream) error {
	if c.untouched(st.id) {
		c.claimed(st, 0, true)
		return nil
	}
	ctx, cancel := context.WithTimeout(c.messageCtx, readTimeout)
	defer cancel()
	if c.config.Broadcast {
		if position, forgotten := c.sequencer.positionOf(st.id); forgotten {
			c.claimed(st, position, false)
			return nil
		}
		return c.baseline(ctx, st, false)
	}
	var position uint64
	var found bool
	var err error
	fences := c.table == nil || c.commits.Load() || c.config.Failures.skips()
	if fences {
		position, found, err = c.config.Positions.Claim(ctx, c.group(), st.id, c.epoch)
	} else {
		position, found, err = c.checkpoint.ReadPosition(ctx, c.key.Group, st.id, c.epoch)
	}
	if err != nil {
		return err
	}
	c.stats.claims.Add(1)
	if !found && !c.since.IsZero() {
		return c.baseline(ctx, st, fences)
	}
	c.claimed(st, position, fences)
	return nil
}

func (c *committer) claimed(st *stream, position uint64, fenced bool) {
	st.position.fenced = fenced
	st.position.stored.Store(position)
	c.sequencer.claimed(st, position)
}

// untouched reports that no position of an aggregate can have been stored: this is the first term
// of the shard in the group, and the stream was not forgotten. Then there is nothing to claim,
// which spares a new group that reads all of history a request for each aggregate.
func (c *committer) untouched(id aggregate.ID) bool {
	if _, forgotten := c.sequencer.positionOf(id); forgotten {
		return false
	}
	return c.fresh && c.since.IsZero() && !c.sequencer.hasForgotten(id)
}

// baseline finds out where a group that starts at a time begins with an aggregate: after the last
// event before that time.
func (c *committer) baseline(ctx context.Context, st *stream, fenced bool) error {
	head, err := c.raw.Head(ctx, st.id)
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
	st.position.fenced, st.position.begins = fenced, true
	c.sequencer.claimed(st, before)
	return nil
}

// storeBaseline stores it before the first delivery: a later event with an earlier time would move
// it. An aggregate that has no events since then costs no write.
func (c *committer) storeBaseline(st *stream) error {
	if err := st.position.own(c.messageCtx); err != nil {
		return err
	}
	defer st.position.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.messageCtx, writeTimeout)
	defer cancel()
	if err := c.resolve(ctx, st); err != nil {
		return err
	}
	begin, stored := c.sequencer.ackedOf(st), st.position.stored.Load()
	if stored == 0 || stored < begin {
		var err error
		if stored, err = c.store(ctx, st, stored, begin); err != nil {
			return err
		}
	}
	st.position.begins = false
	c.sequencer.clean(st, stored)
	return nil
}

// takeOver finds out how far an aggregate goes that was listed: the cursor has passed what came
// since then, so its end has to say. The caller has claimed its position.
func (c *committer) takeOver(st *stream) error {
	ctx, cancel := context.WithTimeout(c.messageCtx, readTimeout)
	defer cancel()
	head, err := c.headNow(ctx, st.id)
	if err != nil {
		return err
	}
	c.sequencer.tookOver(st, head)
	return nil
}

// headNow is the number of an aggregate's last event.
func (c *committer) headNow(ctx context.Context, id aggregate.ID) (uint64, error) {
	version, err := c.raw.Version(ctx, id)
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

// verifyAtOnce is how many parked aggregates are verified with each flush: one request where the
// positions are in the journal's own table.
const verifyAtOnce = 100

// verifyParked looks whether the group is beyond the events by which aggregates were parked. A
// former owner may have parked one late, without knowing that another went on.
func (c *committer) verifyParked(ctx context.Context) {
	some := c.sequencer.takeUnverified(verifyAtOnce)
	if len(some) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	positions, err := c.positions(ctx, some)
	if c.isStopping() {
		return
	}
	c.failed("Cannot verify which aggregates are parked, will try again", []error{err})
	c.sequencer.verify(some, positions)
}

// positions reads those of some streams: all that could be read, and an error for the rest.
func (c *committer) positions(ctx context.Context, streams []*stream) (map[aggregate.ID]uint64, error) {
	positions := make(map[aggregate.ID]uint64, len(streams))
	if c.table != nil {
		ids := make([]aggregate.ID, len(streams))
		for i, st := range streams {
			ids[i] = st.id
		}
		found, err := c.checkpoint.Positions(ctx, c.key, ids, true)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			positions[id] = found[id] // 0 where there is none
		}
		return positions, nil
	}
	claimed := make([]uint64, len(streams))
	claims := make([]func() error, len(streams))
	for i, st := range streams {
		claims[i] = func() (err error) {
			claimed[i], _, err = c.config.Positions.Claim(ctx, c.group(), st.id, c.epoch)
			return err
		}
	}
	errs := c.inParallel(claims)
	for i, st := range streams {
		if errs[i] == nil {
			positions[st.id] = claimed[i]
		}
	}
	return positions, errors.Join(errs...)
}
