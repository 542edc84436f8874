package subscriber

import (
	"context"
	"errors"
	"fmt"
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

	together bool // with other events, so it may not be this one's
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
func (sh *shard) fail(st *stream, err error) {
	if sh.fenced(err) || sh.messageCtx.Err() != nil || sh.isStopping() {
		return
	}
	var corrupt *journal.CorruptItemError
	if errors.As(err, &corrupt) && sh.before(st, corrupt) {
		sh.delay(st, 0) // what comes before the corrupt event is fine
		return
	}
	failed := sh.failureOf(st, err)
	if failed == nil { // the store could not be reached, which is no fault of the event
		st.failures++
		sh.block(st, err, backoffOf(minFailurePause, maxFailurePause, st.failures))
		return
	}
	if failed.together {
		sh.delay(st, 0) // the message comes again alone
		return
	}
	if st.attempts++; st.attempts == 1 {
		st.resumed = sh.resumed.Load()
	}
	if policy := sh.config.Failures; policy.kind != block && st.attempts >= policy.attempts {
		err := sh.giveUp(st, failed)
		if err != nil && !errors.Is(err, errStopped) && !sh.fenced(err) {
			sh.block(st, err, backoffOf(minFailurePause, maxFailurePause, st.attempts-policy.attempts+1))
		}
		return
	}
	if failed.answered() {
		sh.delay(st, sh.config.nackPause(st.attempts))
		return
	}
	sh.block(st, err, backoffOf(minFailurePause, maxFailurePause, st.attempts))
}

// failureOf returns what is wrong with the next event itself, if it is that.
func (sh *shard) failureOf(st *stream, err error) *failure {
	var failed *failure
	if errors.As(err, &failed) {
		return failed
	}
	var corrupt *journal.CorruptItemError
	if errors.As(err, &corrupt) {
		return &failure{record: &journal.Record{Aggregate: st.id, Number: sh.ackedOf(st) + 1}, err: err}
	}
	return nil
}

// giveUp does what the policy says.
func (sh *shard) giveUp(st *stream, f *failure) error {
	stored, err := sh.committed(st)
	if kind := sh.config.Failures.kind; errors.Is(err, errCommitting) && (kind == skip || kind == stop) {
		err = nil // to skip waits for it, and to stop passes nothing over
	}
	if err != nil {
		return err
	}
	if stored >= f.record.Number { // the handler's own transaction was done, and the reply to it was lost
		sh.ack(st, stored)
		sh.resume(st)
		return nil
	}
	cause := briefError{f.cause()}
	v := &verdict{
		number: f.record.Number, eventType: f.record.EventType, at: sh.now(), err: cause, attempts: st.attempts,
		reason: fmt.Sprintf("%v, %s", cause, times(st.attempts)),
	}
	switch sh.config.Failures.kind {
	case poisonQueue:
		return sh.sendPoison(st, f, v)
	case skip, stop:
		// From now on the event is not tried again, whatever becomes of the write.
		st.verdict = v
		sh.resume(st)
		return nil
	default:
		if err := sh.park(st, &checkpoint.Parked{Number: v.number, At: v.at, Reason: v.reason}); err != nil {
			return err
		}
		sh.stats.parked.Add(1)
		sh.logger.Error("Aggregate is parked, its events wait until it is told to go on", v.err, v.fields(st))
		return nil
	}
}

// committed reports where the position is stored, after all that handlers may have done.
func (sh *shard) committed(st *stream) (uint64, error) {
	if err := st.position.own(sh.messageCtx); err != nil {
		return 0, err
	}
	defer st.position.mu.Unlock()
	ctx, cancel := context.WithTimeout(sh.messageCtx, writeTimeout)
	defer cancel()
	err := sh.settlePosition(ctx, st)
	return st.position.stored.Load(), err
}

func (sh *shard) block(st *stream, err error, pause time.Duration) {
	sh.stats.failures.Add(1)
	sh.logger.Error("Aggregate is blocked, will try again", briefError{err}, watermill.LogFields{
		"aggregate_id": st.id.Value, "pause": pause, "attempts": st.attempts,
	})
	sh.delay(st, pause)
}

// backoffOf doubles from first to most with each failure.
func backoffOf(first, most time.Duration, failures int) time.Duration {
	if failures > 20 {
		return most
	}
	return min(most, first<<max(0, failures-1))
}

// delay frees the lane and brings the stream back after a pause.
func (sh *shard) delay(st *stream, pause time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.state = delayed
	st.drop() // any number of streams may wait
	st.cautious = true
	if !sh.ended {
		st.timer = time.AfterFunc(max(0, pause), func() { sh.resume(st) })
	}
}

func (sh *shard) resume(st *stream) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.state = active
	sh.lanes.run(st, true)
}

// before notes the place of a corrupt event, or that it is not known, and reports whether there may
// be others before it. They are not to wait for it, nor to count as failed.
func (sh *shard) before(st *stream, corrupt *journal.CorruptItemError) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if corrupt.Number > st.acked+1 {
		st.corrupt = corrupt.Number
		return true
	}
	return corrupt.Number == 0 && !st.cautious
}
