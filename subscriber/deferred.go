package subscriber

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// deferEvent records that an event is deferred, and lets its aggregate continue.
func (d *deliverer) deferEvent(ctx context.Context, st *stream) error {
	v := st.Work.delivery.disposition
	due := v.at.Add(d.config.Failures.backoff.pause(v.attempts))
	stored, deferred, err := d.committer.skip(ctx, st, checkpoint.Skipped{
		Aggregate: st.ID, Number: v.number, EventType: v.eventType, At: v.at, Reason: v.reason, Epoch: d.epoch,
		Due: due, Attempts: v.attempts, Part: st.Work.delivery.part,
	})
	if err != nil {
		return err
	}
	if deferred {
		d.stats.deferred.Add(1)
		d.logger.Info("Event is deferred", v.fields(st).Add(watermill.LogFields{"err": v.err, "due": due}))
		d.deferrals.add(st.ID, v.number, due)
	}
	d.ack(st, stored)
	return nil
}

// retry delivers a deferred event once more. It reads the record before, because an operator or
// another owner of the shard may have changed or deleted it.
func (d *deliverer) retry(e *deferral) {
	if !d.enter() {
		return
	}
	defer d.serving.Done()
	if d.isStopping() {
		return
	}
	id := aggregate.ID{Type: d.topic, Value: e.value}
	due, err := d.retryRecorded(e, id)
	switch {
	case errors.Is(err, errStopped), d.messageCtx.Err() != nil:
	// A former owner or an operator has changed the record. Read it again.
	case errors.Is(err, ErrFenced):
		d.deferrals.again(e, d.now().Add(minFailurePause))
	case err != nil:
		e.failures++
		d.stats.failures.Add(1)
		pause := retry.Backoff(minFailurePause, maxFailurePause, e.failures)
		d.logger.Error("Cannot retry a deferred event, will try again", briefError{err}, watermill.LogFields{
			"aggregate_id": printable.Text(e.value), "number": e.number, "pause": pause,
		})
		d.deferrals.again(e, d.now().Add(pause))
	case due.IsZero():
		d.deferrals.done(e)
	default:
		e.failures = 0
		d.deferrals.again(e, due)
	}
}

// retryRecorded retries an event if its record says that it is due. It returns the time at which
// the event is due again, or zero if it is not. Its errors are those of the store.
func (d *deliverer) retryRecorded(e *deferral, id aggregate.ID) (due time.Time, err error) {
	record, found, err := d.readDeferred(id, e.number)
	if err != nil || !found || record.Due.IsZero() {
		return time.Time{}, err
	}
	if !e.handled {
		if due := record.DueBy(d.now()); due.After(d.now()) {
			return due, nil
		}
		if err := d.deliverAgain(&record); err != nil {
			return d.failedAgain(record, err)
		}
		e.handled = true
		d.stats.retried.Add(1)
	}
	writing, cancelWrite := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancelWrite()
	return time.Time{}, d.checkpoint.RemoveSkipped(writing, d.key.Group, record)
}

func (d *deliverer) readDeferred(id aggregate.ID, number uint64) (record checkpoint.Skipped, found bool, err error) {
	ctx, cancel := context.WithTimeout(d.messageCtx, readTimeout)
	defer cancel()
	return d.checkpoint.ReadSkipped(ctx, d.key.Group, id, number)
}

// failedAgain records a failed attempt. After the last one the event stays recorded as skipped.
func (d *deliverer) failedAgain(was checkpoint.Skipped, failure error) (due time.Time, err error) {
	failed := d.failureOfDeferred(was, failure)
	if failed == nil {
		return time.Time{}, failure
	}
	b := d.config.Failures.backoff
	cause := briefError{failed.cause()}
	now := was
	now.Epoch, now.At, now.Attempts = d.epoch, d.now(), was.Attempts+1
	now.Reason = fmt.Sprintf("%v, %s", cause, times(now.Attempts))
	if now.Due = now.At.Add(b.pause(now.Attempts)); now.Attempts >= b.Attempts {
		now.Due = time.Time{}
	} else {
		d.logFailure(failed, now.Attempts, now.Due.Sub(now.At))
	}
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	if err := d.checkpoint.Reschedule(ctx, d.key.Group, was, now); err != nil {
		return time.Time{}, err
	}
	if now.Due.IsZero() {
		d.deferrals.gaveUp()
		d.stats.skipped.Add(1)
		d.logger.Error("Deferred event is given up; its record stays", cause, failed.fields(now.Attempts))
	}
	return now.Due, nil
}

// failureOfDeferred returns the failure of the event itself, or nil if the store failed.
func (d *deliverer) failureOfDeferred(e checkpoint.Skipped, err error) *failure {
	var failed *failure
	if errors.As(err, &failed) {
		return failed
	}
	if errors.As(err, new(*journal.CorruptItemError)) {
		return &failure{record: &journal.Record{Aggregate: e.Aggregate, Number: e.Number}, err: err}
	}
	return nil
}

// deliverAgain reads an event and delivers its message, or the messages of the events that
// upcasters make of it. The record's Part counts the messages that were acked. An event that was
// removed, or whose key was destroyed, is passed over.
func (d *deliverer) deliverAgain(e *checkpoint.Skipped) error {
	stored, err := d.readEvent(e.Aggregate, e.Number)
	if errors.As(err, new(*journal.TruncatedError)) {
		d.stats.truncated.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	r, err := d.decode(stored)
	if errors.Is(err, journal.ErrKeyDestroyed) {
		d.stats.destroyed.Add(1)
		return nil
	}
	if err != nil {
		return &failure{record: stored, err: err}
	}
	events, several := []*journal.Record{r}, false
	if d.history.Upcasts(r.Aggregate.Type, r.EventType) {
		if events, err = d.today(r); err != nil {
			return &failure{record: stored, err: err}
		}
		several = len(events) > 1
	} else if !d.config.wants(r.EventType) {
		events = nil
	}
	if len(events) == 0 {
		d.stats.filtered.Add(1)
	}
	// It has no position, because the aggregate's position is already after the event.
	st := &stream{ID: e.Aggregate}
	for ; e.Part < len(events); e.Part++ {
		msg, err := d.unmarshal(events[e.Part])
		if err != nil {
			return err
		}
		if several {
			markPart(msg, e.Part+1, len(events))
		}
		if msg.Metadata == nil {
			msg.Metadata = message.Metadata{}
		}
		msg.Metadata[DeferredKey] = "true"
		st.Work.delivery.deliveries = e.Attempts
		if err := d.send(st, events[e.Part], msg, true); err != nil {
			return err
		}
	}
	return nil
}

// readEvent reads one event.
func (d *deliverer) readEvent(id aggregate.ID, number uint64) (*journal.Record, error) {
	ctx, cancel := context.WithTimeout(d.messageCtx, readTimeout)
	defer cancel()
	for r, err := range d.raw.Events(ctx, id, number, number) {
		return r, err
	}
	return nil, &failure{
		record: &journal.Record{Aggregate: id, Number: number},
		err:    fmt.Errorf("event %d of %s is not in the journal: was it restored to an earlier time?", number, id),
	}
}
