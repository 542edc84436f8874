package subscriber

import (
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/journal"
)

// FailurePolicy says what becomes of an event that keeps failing: one that cannot be read, decoded or unmarshaled, or whose message
// is nacked or not acked in time. In every case its own aggregate waits, and no other. The zero value is [Block].
//
// Pauses between attempts are of two kinds. After an event that cannot be read, decoded or unmarshaled they double, from 100 ms up to
// 30 seconds: ten attempts take about a minute, twenty about six. After a message that was nacked, or not acked in time, the pause is
// [Config.NackResendSleep], 100 ms by default, and grows only if [Config.MaxNackResendSleep] is longer: by default twenty
// attempts take 2 seconds, besides the handler's own time.
type FailurePolicy struct {
	attempts  int
	publisher message.Publisher
	topic     string
}

// Block tries for ever. Whoever mends the cause need do nothing more. For the pauses see [FailurePolicy].
func Block() FailurePolicy { return FailurePolicy{} }

// Park gives up an aggregate after a number of failed attempts at one event: its events wait in the journal, and it is on a list
// that package groups shows, until it is told there to go on. Attempts are counted by each member anew, from when it took the shard over.
// An encoding whose keys cannot be had for a while fails too, and so does a handler whose database is down, so choose a number whose
// pauses outlast that. Those of unreadable events grow, those of nacked messages do not by default: Park(20) gives a failing handler
// about 2 seconds. With MaxNackResendSleep of 30 seconds beside it, it has about six minutes. See [FailurePolicy].
func Park(attempts int) FailurePolicy { return FailurePolicy{attempts: attempts} }

// PoisonQueue gives up a single event after a number of failed attempts: its message goes to a topic of a publisher, with the
// metadata that Watermill's middleware of the same name sets, and the aggregate goes on with the next event. A message of an event
// that cannot be decoded has the payload as it is stored, and that of one that cannot be read has none. When the
// publisher fails, the event is tried again. Use the middleware for handlers that tell by the error whether to give up.
func PoisonQueue(attempts int, publisher message.Publisher, topic string) FailurePolicy {
	return FailurePolicy{attempts: attempts, publisher: publisher, topic: topic}
}

func (p FailurePolicy) validate() error {
	switch {
	case p.attempts < 0, p.attempts == 0 && p.topic != "":
		return &ConfigError{"Failures", "needs at least one attempt"}
	case (p.publisher == nil) != (p.topic == ""):
		return &ConfigError{"Failures", "needs both a publisher and a topic for the poison queue"}
	}
	return nil
}

// Metadata of messages in a poison queue, as Watermill's middleware has it.
const (
	metadataReason     = "reason_poisoned"
	metadataTopic      = "topic_poisoned"
	metadataHandler    = "handler_poisoned"
	metadataSubscriber = "subscriber_poisoned"
)

var (
	errNacked      = errors.New("the message was nacked")
	errAckDeadline = errors.New("the message was not acked in time")
)

// failure is an error that counts as a failed attempt at an event.
type failure struct {
	record *journal.Record  // as far as it could be read
	msg    *message.Message // if there was one
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// answered tells that the message was out, so that nothing is wrong with the store.
func (f *failure) answered() bool { return f.msg != nil }

// A stream that cannot be read or decoded is tried again after a pause that
// doubles from minFailurePause to maxFailurePause.
const (
	minFailurePause = 100 * time.Millisecond
	maxFailurePause = 30 * time.Second
)

// fail makes a stream wait after an error, longer each time. Its own events wait, those of other aggregates do not.
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
	st.attempts++
	if policy := sh.config.Failures; policy.attempts > 0 && st.attempts >= policy.attempts {
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

// failureOf gives what is wrong with the next event itself, if it is that.
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
	reason := fmt.Sprintf("%v, %d times", f.err, st.attempts)
	fields := watermill.LogFields{"aggregate_id": st.id.Value, "number": f.record.Number, "attempts": st.attempts}
	policy := sh.config.Failures
	if policy.topic == "" {
		if err := sh.park(st, &checkpoint.Parked{Number: f.record.Number, At: sh.now(), Reason: reason}); err != nil {
			return err
		}
		sh.stats.parked.Add(1)
		sh.logger.Error("Aggregate is parked, its events wait until it is told to go on", f.err, fields)
		return nil
	}
	if err := sh.publishPoison(sh.poison(f, reason)); err != nil {
		return fmt.Errorf("publish event %d of %s to the poison queue: %w", f.record.Number, st.id, err)
	}
	sh.stats.poisoned.Add(1)
	sh.logger.Error("Event went to the poison queue", f.err, fields)
	sh.ack(st, f.record.Number)
	sh.resume(st)
	return nil
}

// publishPoison does not wait for a publisher that does not return once the shard is given up. The event comes again then.
func (sh *shard) publishPoison(msg *message.Message) error {
	published := make(chan error, 1)
	go func() { published <- sh.config.Failures.publisher.Publish(sh.config.Failures.topic, msg) }()
	select {
	case err := <-published:
		return err
	case <-sh.abandoned:
		return errStopped
	}
}

// poison makes the message for the poison queue.
func (sh *shard) poison(f *failure, reason string) *message.Message {
	var msg *message.Message
	if f.msg != nil {
		msg = f.msg.Copy()
	} else {
		msg = envelope.Message(f.record)
	}
	if msg.UUID == "" {
		msg.UUID = watermill.NewUUID()
	}
	msg.SetContext(sh.messageCtx)
	msg.Metadata.Set(metadataReason, reason)
	msg.Metadata.Set(metadataTopic, sh.topic)
	msg.Metadata.Set(metadataHandler, "")
	msg.Metadata.Set(metadataSubscriber, "subscriber.Subscriber")
	return msg
}

func (sh *shard) block(st *stream, err error, pause time.Duration) {
	sh.stats.failures.Add(1)
	sh.logger.Error("Aggregate is blocked, will try again", err, watermill.LogFields{
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
	sh.lanes.run(st)
}

// before notes the place of a corrupt event, or that it is not known, and tells whether there may be others before it. They are
// not to wait for it, nor to count as failed.
func (sh *shard) before(st *stream, corrupt *journal.CorruptItemError) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if corrupt.Number > st.acked+1 {
		st.corrupt = corrupt.Number
		return true
	}
	return corrupt.Number == 0 && !st.cautious
}
