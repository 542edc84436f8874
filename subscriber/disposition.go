package subscriber

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// disposition is the decision to give up an event.
type disposition struct {
	number    uint64
	eventType string
	at        time.Time
	attempts  int
	err       error  // the error of the last attempt
	reason    string // the text that is stored
}

func (v *disposition) fields(st *stream) watermill.LogFields {
	return fieldsOf(st.ID, v.number, v.eventType, v.attempts)
}

// apply writes the result of a disposition, and reports whether the stream continues. After an
// error it is called again, and the event is not delivered meanwhile, because an earlier attempt at
// the write may still take effect.
func (d *deliverer) apply(st *stream) (more bool, err error) {
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	switch d.config.Failures.kind {
	case stop:
		return true, d.stopGroup(ctx, st)
	case skip:
		return true, d.skip(ctx, st)
	case deferEvents:
		return true, d.deferEvent(ctx, st)
	default:
		return false, d.park(ctx, st)
	}
}

// park adds an aggregate to the behind list as parked, and stops its delivery.
func (d *deliverer) park(ctx context.Context, st *stream) error {
	v := st.Work.delivery.disposition
	if err := d.committer.park(ctx, st, &checkpoint.Failure{Number: v.number, At: v.at, Reason: v.reason, Attempts: v.attempts}); err != nil {
		return err
	}
	d.stats.parked.Add(1)
	d.logger.Error("Aggregate is parked; its events wait until an operator unparks it", v.err, v.fields(st))
	return nil
}

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
