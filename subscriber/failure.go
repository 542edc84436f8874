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

var (
	errNacked      = errors.New("the message was nacked without a reason (see subscriber.NackReason)")
	errAckDeadline = errors.New("the message was not acked in time")
)

// failure is an error that counts as a failed attempt at an event.
type failure struct {
	record *journal.Record  // as much of it as could be read
	msg    *message.Message // nil if no message was made
	err    error
	// reason is the handler's reason. It may be about anything, so it is only shown to people.
	// Unwrap does not return it.
	reason error

	// batched reports that the transaction was for several events, so another event may be the
	// reason.
	batched bool
	// part and parts say which of several messages failed, see deliverCurrent.
	part, parts int
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// answered reports that a message was delivered, so the store was available.
func (f *failure) answered() bool { return f.msg != nil }

// A stream that cannot be read or decoded is retried after a pause that doubles from
// minFailurePause to maxFailurePause.
const (
	minFailurePause = 100 * time.Millisecond
	maxFailurePause = 30 * time.Second
)

// recovered returns a panic of code of the application as an error, so that it blocks one
// aggregate. It would end the process otherwise, and then the process of the next owner.
func recovered(err *error, what string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s panicked: %v", what, r)
	}
}

// fail makes a stream wait after an error, longer each time. Other streams do not wait.
func (d *deliverer) fail(st *stream, err error) {
	failed := d.failureOf(st, err)
	if d.endsWith(err) {
		if failed != nil && failed.answered() {
			d.logger.Error("Handler failed while the shard ends; the event is delivered again", briefError{failed.cause()}, failed.fields(st.Work.delivery.attempts+1))
		}
		return
	}
	var corrupt *journal.CorruptItemError
	if errors.As(err, &corrupt) && d.sequencer.BeforeCorrupt(st, corrupt.Number) {
		d.delay(st, 0, 0) // the events before the corrupt one can be read
		return
	}
	if failed == nil { // the store could not be reached, which does not count as an attempt
		st.Work.delivery.failures++
		d.block(st, err, st.Work.delivery.failures)
		return
	}
	if failed.batched {
		d.logger.Info("Transaction for several events failed; they are handled one by one", failed.fields(1).Add(watermill.LogFields{"err": briefError{failed.cause()}}))
		d.delay(st, 0, 0) // the message is delivered again alone
		return
	}
	if st.Work.delivery.attempts++; st.Work.delivery.attempts == 1 {
		st.Work.delivery.resumed = d.resumed.Load()
	}
	pause := retry.Backoff(minFailurePause, maxFailurePause, st.Work.delivery.attempts)
	if failed.answered() {
		pause = d.config.nackPause(st.Work.delivery.attempts)
	}
	if d.visit != nil && errors.Is(failed.err, errAckDeadline) {
		pause = max(pause, 2*soon) // the visit may end
	}
	d.noteFailure(st, failed.record.Number, failed.cause(), st.Work.delivery.attempts, pause)
	policy := d.config.Failures
	if policy.kind != block && st.Work.delivery.attempts >= policy.attempts && d.may(policy, failed) {
		err := d.giveUp(st, failed)
		if err != nil && !errors.Is(err, errStopped) && !d.loseIfFenced(err) {
			failures := st.Work.delivery.attempts - policy.attempts + 1
			d.logFailure(failed, st.Work.delivery.attempts, pause)
			// now it is blocked for this reason
			d.noteFailure(st, failed.record.Number, err, failures, pause)
			d.block(st, err, failures)
		}
		return
	}
	if failed.answered() {
		d.logFailure(failed, st.Work.delivery.attempts, pause)
		d.delay(st, pause, st.Work.delivery.attempts)
		return
	}
	d.block(st, err, st.Work.delivery.attempts)
}

// failUnprepared makes a stream wait after an error of prepare. No policy applies: an item that
// cannot be read is the head or an old event, and not the next event.
func (d *deliverer) failUnprepared(st *stream, err error) {
	st.Work.delivery.failures++
	if errors.As(err, new(*journal.CorruptItemError)) {
		d.noteFailure(st, d.sequencer.AckedOf(st)+1, err, st.Work.delivery.failures, 0)
	}
	d.block(st, err, st.Work.delivery.failures)
}

// endsWith reports whether the shard ends, which explains an error.
func (d *deliverer) endsWith(err error) bool {
	return d.loseIfFenced(err) || d.messageCtx.Err() != nil || d.isStopping()
}

// failureOf returns the failure of the next event itself, or nil if the error has another reason.
func (d *deliverer) failureOf(st *stream, err error) *failure {
	var failed *failure
	if errors.As(err, &failed) {
		return failed
	}
	var corrupt *journal.CorruptItemError
	if errors.As(err, &corrupt) {
		return &failure{record: &journal.Record{Aggregate: st.ID, Number: d.sequencer.AckedOf(st) + 1}, err: err}
	}
	return nil
}

// may reports whether a policy may apply to a failed event. An event that is missing may not exist:
// a damaged head can count too many. So a policy that passes over events must not pass over it.
func (d *deliverer) may(policy FailurePolicy, failed *failure) bool {
	var corrupt *journal.CorruptItemError
	if errors.As(failed.err, &corrupt) && corrupt.Missing && (policy.skips() || policy.kind == poisonQueue) {
		return false
	}
	return policy.kind != deferEvents || !d.deferrals.isFull()
}

// giveUp applies the failure policy to an event that has failed too often.
func (d *deliverer) giveUp(st *stream, f *failure) error {
	stored, err := d.committer.committed(st)
	if policy := d.config.Failures; errors.Is(err, errCommitting) && (policy.skips() || policy.kind == stop) {
		// A skip waits for the transaction, and a stop passes over no event.
		err = nil
	}
	if err != nil {
		return err
	}
	// The handler's transaction was committed, and the reply to it was lost.
	if stored >= f.record.Number {
		d.ack(st, stored)
		d.sequencer.Resume(st)
		return nil
	}
	cause := briefError{f.cause()}
	v := &disposition{
		number: f.record.Number, eventType: f.record.EventType, at: d.now(), err: cause, attempts: st.Work.delivery.attempts,
		reason: reasonOf(cause, st.Work.delivery.attempts, checkpoint.MaxReason),
	}
	if d.config.Failures.kind == poisonQueue {
		return d.sendPoison(st, f, v)
	}
	// From now on the event is not retried, whatever the outcome of the write is.
	st.Work.delivery.disposition = v
	d.sequencer.Resume(st)
	return nil
}

// noteFailure stores why a stream waits and for how long, for its entry on the behind list.
func (d *deliverer) noteFailure(st *stream, number uint64, cause error, failures int, pause time.Duration) {
	d.sequencer.NoteFailure(st, checkpoint.Failure{
		Number: number, At: d.now(), Due: d.now().Add(pause), Reason: reasonOf(cause, failures, checkpoint.MaxFailure), Attempts: st.Work.delivery.attempts,
		Resumed: st.Work.delivery.resumed,
	})
}

// block makes a stream wait after an error that is not the answer of a handler.
func (d *deliverer) block(st *stream, err error, failures int) {
	pause := retry.Backoff(minFailurePause, maxFailurePause, failures)
	d.stats.failures.Add(1)
	if isLogged(failures) {
		fields := watermill.LogFields{"aggregate_id": printable.Text(st.ID.Value), "attempts": failures}
		if failed := d.failureOf(st, err); failed != nil {
			fields = failed.fields(failures)
		}
		d.logger.Error("Aggregate is blocked, will try again", briefError{err}, fields.Add(watermill.LogFields{"pause": pause}))
	}
	d.delay(st, pause, failures)
}

// logFailure logs a failed attempt at an event. The event is delivered again after a pause.
func (d *deliverer) logFailure(f *failure, attempts int, pause time.Duration) {
	if isLogged(attempts) {
		d.logger.Error("Handler failed, will deliver the event again", briefError{f.cause()}, f.fields(attempts).Add(watermill.LogFields{"pause": pause}))
	}
}

// isLogged reports whether to log the failure that makes this number of failures in a row: the
// first three, then each that doubles the number, and each 64th, which is one in half an hour with
// the default pauses.
func isLogged(failures int) bool {
	return failures <= 3 || failures&(failures-1) == 0 || failures%64 == 0
}

func (f *failure) fields(attempts int) watermill.LogFields {
	return fieldsOf(f.record.Aggregate, f.record.Number, f.record.EventType, attempts)
}

// fieldsOf returns the log fields of an event. The logger has the topic, its aggregate type.
func fieldsOf(id aggregate.ID, number uint64, eventType string, attempts int) watermill.LogFields {
	fields := watermill.LogFields{"aggregate_id": printable.Text(id.Value), "number": number, "attempts": attempts}
	if eventType != "" {
		fields["event_type"] = printable.Text(eventType)
	}
	return fields
}

// pacedAfter returns the number of failures in a row up to which the next attempt at an aggregate
// needs no credit. The attempts of a policy need none, because their number is limited.
func (s *subscription) pacedAfter() int { return max(freeFailures, s.config.Failures.attempts) }

// delay frees the worker, and returns the stream to the workers after a pause. A paced stream also
// waits for a credit.
func (d *deliverer) delay(st *stream, pause time.Duration, failures int) {
	d.sequencer.PutOff(st, pause <= soon && failures <= soonFailures)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.timers[st] = time.AfterFunc(max(0, pause), func() {
			d.mu.Lock()
			delete(d.timers, st)
			d.mu.Unlock()
			if failures > d.pacedAfter() {
				d.pace.wait(turn{deliverer: d, stream: st}, failures)
				return
			}
			d.sequencer.Resume(st)
		})
	}
}

// NackReason is a message.HandlerMiddleware that reports the error of a handler to the subscriber,
// because a nack has no reason. [Config.Failures] then records, logs or publishes the error of the
// last attempt, and package groups shows it for blocked aggregates.
//
// Put it outside of middlewares that retry or that recover from panics, and inside of those that
// drop errors. The handlers of packages projection and projection/sqlprojection need no middleware.
func NackReason(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context() // the handler's middlewares may change it
		produced, err := h(msg)
		SetNackReason(ctx, err)
		return produced, err
	}
}

// SetNackReason reports to the subscriber why a message is going to be nacked. It is for handlers
// without [NackReason]. The last call before the nack counts, and nil removes the reason. It
// ignores contexts that do not belong to a message of this package.
func SetNackReason(ctx context.Context, err error) {
	if c, ok := fromContext(ctx); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reason = err
	}
}

// cause returns the known reason why an event could not be handled.
func (f *failure) cause() error {
	switch {
	case f.reason == nil:
		return f.err
	case f.err == errNacked: //nolint:errorlint // it is that very one
		return f.reason
	default:
		return fmt.Errorf("%w: %w", f.err, f.reason)
	}
}

// briefError limits the text of an error to the part that is stored, for logs and messages. A
// handler's error may be long, or not be text.
type briefError struct{ err error }

func (e briefError) Error() string { return checkpoint.Bounded(e.err.Error()) }
func (e briefError) Unwrap() error { return e.err }

// reasonOf returns the text that is stored for an error that occurred a number of times in a row.
// most is its maximum length in bytes. If the Error method panics, the text shows the panic.
func reasonOf(cause error, failures, most int) string {
	often := ", " + times(failures)
	return checkpoint.BoundedTo(fmt.Sprint(cause), most-len(often)) + often
}

// times returns a number of times in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprint(n, " times")
}
