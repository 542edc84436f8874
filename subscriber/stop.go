package subscriber

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

var (
	errPaused  = errors.New("the group is paused already")
	errResumed = errors.New("the group was resumed since the first of the attempts")
)

// stopGroup pauses the group for all members because of an event.
func (d *deliverer) stopGroup(ctx context.Context, st *stream) error {
	v := st.Work.delivery.disposition
	why := checkpoint.Stopped{Aggregate: st.ID, Number: v.number, EventType: v.eventType, At: v.at, Reason: v.reason}
	key := checkpoint.Key{Group: d.key.Group.Name, Topic: d.topic}
	now, err := d.checkpoint.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		switch {
		case r.Resets != d.key.Group.Resets || !r.Owns(d.owner, d.number, d.epoch):
			return r, ErrFenced
		case r.Resumed != st.Work.delivery.resumed:
			return r, errResumed
		case r.Paused:
			return r, errPaused
		}
		return r.Stop(why), nil
	})
	switch {
	// in the second case a reply was lost
	case err == nil, errors.Is(err, errPaused) && now.Stopped.Same(why):
		d.stats.stopped.Add(1)
		d.logger.Error("Consumer group is stopped because of an event that keeps failing, until it is resumed", v.err, v.fields(st))
	case errors.Is(err, errPaused):
		d.logger.Error("Event keeps failing, and the consumer group is paused already", v.err, v.fields(st))
	case errors.Is(err, errResumed):
		// The group was resumed since the event failed first. Perhaps an earlier attempt has
		// stopped the group, and its reply was lost. The operator wants the event to be tried
		// again.
		d.resumed.Store(now.Resumed)
		st.Work.delivery.attempts, st.Work.delivery.disposition = 0, nil
		return nil
	case errors.Is(err, checkpoint.ErrNoGroup):
		return ErrFenced // the group was removed
	default:
		return err
	}
	// The member reads the membership when the work on the shard has ended.
	d.Stop()
	return errStopped
}
