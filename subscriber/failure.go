package subscriber

import (
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

var (
	errNacked      = errors.New("the message was nacked without a reason (see subscriber.NackReason)")
	errAckDeadline = errors.New("the message was not acked in time")
)

// failure is an error that counts as a failed attempt at an event.
type failure struct {
	record *journal.Record  // as far as it could be read
	msg    *message.Message // if there was one
	err    error
	reason error // of the handler. It may be about anything, so nothing but people go by it, and errors.Is does not see it

	batched     bool // with other events, so it may not be this one's
	part, parts int  // which message it would have been, of several; see deliverToday
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// answered reports that the message was out, so that nothing is wrong with the store.
func (f *failure) answered() bool { return f.msg != nil }

// A stream that cannot be read or decoded is tried again after a pause that
// doubles from minFailurePause to maxFailurePause.
const (
	minFailurePause = 100 * time.Millisecond
	maxFailurePause = 30 * time.Second
)

// fail makes a stream wait after an error, longer each time. Its own events wait, those of other
// aggregates do not.
func (d *deliverer) fail(st *stream, err error) {
	if d.fenced(err) || d.messageCtx.Err() != nil || d.isStopping() {
		return
	}
	var corrupt *journal.CorruptItemError
	if errors.As(err, &corrupt) && d.sequencer.beforeCorrupt(st, corrupt.Number) {
		d.delay(st, 0) // what comes before the corrupt event is fine
		return
	}
	failed := d.failureOf(st, err)
	if failed == nil { // the store could not be reached, which is no fault of the event
		st.delivery.failures++
		d.block(st, err, backoffOf(minFailurePause, maxFailurePause, st.delivery.failures))
		return
	}
	if failed.batched {
		d.delay(st, 0) // the message comes again alone
		return
	}
	if st.delivery.attempts++; st.delivery.attempts == 1 {
		st.delivery.resumed = d.resumed.Load()
	}
	d.noteFailure(st, failed.record.Number, failed.cause(), st.delivery.attempts)
	policy := d.config.Failures
	if policy.kind != block && st.delivery.attempts >= policy.attempts && (policy.kind != deferEvents || !d.deferrals.isFull()) {
		err := d.giveUp(st, failed)
		if err != nil && !errors.Is(err, errStopped) && !d.fenced(err) {
			failures := st.delivery.attempts - policy.attempts + 1
			d.noteFailure(st, failed.record.Number, err, failures) // now it is blocked for this reason
			d.block(st, err, backoffOf(minFailurePause, maxFailurePause, failures))
		}
		return
	}
	if failed.answered() {
		d.delay(st, d.config.nackPause(st.delivery.attempts))
		return
	}
	d.block(st, err, backoffOf(minFailurePause, maxFailurePause, st.delivery.attempts))
}

// failureOf returns what is wrong with the next event itself, if it is that.
func (d *deliverer) failureOf(st *stream, err error) *failure {
	var failed *failure
	if errors.As(err, &failed) {
		return failed
	}
	var corrupt *journal.CorruptItemError
	if errors.As(err, &corrupt) {
		return &failure{record: &journal.Record{Aggregate: st.id, Number: d.sequencer.ackedOf(st) + 1}, err: err}
	}
	return nil
}

// giveUp does what the policy says.
func (d *deliverer) giveUp(st *stream, f *failure) error {
	stored, err := d.committer.committed(st)
	if policy := d.config.Failures; errors.Is(err, errCommitting) && (policy.skips() || policy.kind == stop) {
		err = nil // to skip waits for it, and to stop passes nothing over
	}
	if err != nil {
		return err
	}
	if stored >= f.record.Number { // the handler's own transaction was done, and the reply to it was lost
		d.ack(st, stored)
		d.sequencer.resume(st)
		return nil
	}
	cause := briefError{f.cause()}
	v := &disposition{
		number: f.record.Number, eventType: f.record.EventType, at: d.now(), err: cause, attempts: st.delivery.attempts,
		reason: reasonOf(cause, st.delivery.attempts, checkpoint.MaxReason),
	}
	if d.config.Failures.kind == poisonQueue {
		return d.sendPoison(st, f, v)
	}
	// From now on the event is not tried again, whatever becomes of the write.
	st.delivery.disposition = v
	d.sequencer.resume(st)
	return nil
}

// noteFailure has the list of those behind show why a stream waits.
func (d *deliverer) noteFailure(st *stream, number uint64, cause error, failures int) {
	d.sequencer.noteFailure(st, checkpoint.Failure{Number: number, At: d.now(), Reason: reasonOf(cause, failures, checkpoint.MaxFailure)})
}

func (d *deliverer) block(st *stream, err error, pause time.Duration) {
	d.stats.failures.Add(1)
	d.logger.Error("Aggregate is blocked, will try again", briefError{err}, watermill.LogFields{
		"aggregate_id": st.id.Value, "pause": pause, "attempts": st.delivery.attempts,
	})
	d.delay(st, pause)
}

// backoffOf doubles from first to most with each failure.
func backoffOf(first, most time.Duration, failures int) time.Duration {
	doublings := max(0, failures-1)
	if doublings > 40 || first > most>>doublings {
		return most
	}
	return first << doublings
}

// delay frees the worker and brings the stream back after a pause.
func (d *deliverer) delay(st *stream, pause time.Duration) {
	d.sequencer.putOff(st)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.timers[st] = time.AfterFunc(max(0, pause), func() {
			d.mu.Lock()
			delete(d.timers, st)
			d.mu.Unlock()
			d.sequencer.resume(st)
		})
	}
}
