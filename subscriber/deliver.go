package subscriber

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/internal/source"
)

// deliverer delivers the events of a shard, one at a time for each aggregate, and handles failures.
type deliverer struct {
	*term
	source    *source.Source
	sequencer *sequencer
	committer *committer
	deferrals *deferrals

	// resumed counts how often the group was resumed, as far as this shard knows. It applies to
	// events whose first attempt fails from now on.
	resumed atomic.Uint64

	mu    sync.Mutex
	ended bool
	// serving counts the workers. None is added after the end.
	serving sync.WaitGroup
	timers  map[*stream]*time.Timer
}

// delivery is the state of the delivery of a stream's next event. Only the stream's worker uses it.
type delivery struct {
	number uint64 // the number of the event
	// parts is the number of messages that the event becomes, and part counts those that are acked.
	// See deliverCurrent.
	part, parts int
	deliveries  int // deliveries of its message
	attempts    int // failed attempts to make or to handle the message
	failures    int // failures to reach the store
	// resumed is the group's count of resumes that the shard knew at the first failed attempt.
	resumed uint64
	// disposition is set if the event is given up and that is not stored yet.
	disposition *disposition
}

func newDeliverer(t *term, s *source.Source, q *sequencer, c *committer, f *deferrals, r checkpoint.Membership) *deliverer {
	d := &deliverer{term: t, source: s, sequencer: q, committer: c, deferrals: f, timers: map[*stream]*time.Timer{}}
	d.resumed.Store(r.Resumed)
	return d
}

// fairShare is the number of messages that a worker delivers for one stream before it serves
// streams that wait.
const fairShare = 64

// errStopped ends a delivery because the shard ends.
var errStopped = errors.New("the shard has stopped")

// enter registers a worker. It returns false if the shard has ended.
func (d *deliverer) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.serving.Add(1)
	return true
}

// end prevents new deliveries, and waits for the running workers.
func (d *deliverer) end() {
	d.mu.Lock()
	d.ended = true
	for _, timer := range d.timers {
		timer.Stop()
	}
	clear(d.timers)
	d.mu.Unlock()
	d.serving.Wait()
}

// serve delivers the events of a stream one after the other. It returns when there are no more
// events, when the stream must wait, or when other streams have waited long enough. In the last
// case again is true.
func (d *deliverer) serve(st *stream) (again bool) {
	if !d.enter() {
		return false
	}
	defer d.serving.Done()
	d.sequencer.BeginServing(st)
	if err := d.prepare(st); err != nil {
		if d.endsWith(err) {
			return false
		}
		if d.sequencer.Dismiss(st) {
			d.leaveHint(err)
			return false
		}
		if errors.Is(err, errNothingNew) { // it has got events meanwhile
			d.sequencer.EndServing(st)
			return true
		}
		d.failUnprepared(st, err)
		return false
	}
	for delivered := 0; ; delivered++ {
		if d.isStopping() || !d.sequencer.Admit(st) {
			return false
		}
		if delivered >= fairShare && d.lanes.Crowded() {
			d.sequencer.EndServing(st)
			return true
		}
		more, err := d.step(st)
		if err != nil {
			d.fail(st, err)
		}
		if err != nil || !more {
			return false
		}
	}
}

// prepare determines the position of a stream when it is served for the first time.
func (d *deliverer) prepare(st *stream) error {
	if !st.IsClaimed() {
		if d.sequencer.KnownByHint(st) && d.committer.claimWrites(st.ID) {
			switch more, err := d.committer.hasMore(st.ID); {
			case err != nil:
				return err
			case !more:
				return errNothingNew
			}
		}
		if err := d.committer.claim(st); err != nil {
			return err
		}
	}
	if st.IsInherited() {
		return d.committer.takeOver(st)
	}
	return nil
}

// errNothingNew ends the preparation of a stream that only a wrong hint has made known.
var errNothingNew = errors.New("the aggregate has no events for the group")

// step does the next thing for a stream, and reports whether there was one.
func (d *deliverer) step(st *stream) (more bool, err error) {
	if st.Work.delivery.disposition != nil {
		return d.apply(st)
	}
	if d.config.Timing.CommitInterval < 0 || d.unclean {
		if err := d.committer.commitAck(st); err != nil {
			return false, err
		}
	}
	record, err := d.nextRecord(st)
	if err != nil || record == nil {
		return false, err
	}
	if st.Work.delivery.number != record.Number {
		st.Work.delivery = delivery{number: record.Number}
		if d.config.Failures.counts() || d.visit != nil {
			resumed := d.resumed.Load()
			st.Work.delivery.attempts, st.Work.delivery.resumed = d.sequencer.AttemptsAt(st, record.Number, resumed), resumed
		}
		d.noteReconciled(st, record)
	}
	if st.Work.position.begins {
		if err := d.committer.storeBaseline(st); err != nil {
			return false, err
		}
	}
	if d.visit != nil && !st.Work.counted && (d.unclean || d.sequencer.MayHaveEnded(st, record.Number)) {
		if err := d.beforehand(st, record); err != nil {
			return false, err
		}
	}
	return true, d.deliver(st, record)
}

// beforehand stores an attempt at the first event of a stream before the event is delivered. The
// process that visited the shard before, or that has tried the event before, has ended in the
// middle of its work. Perhaps the event is the reason, and then it will end this process too.
func (d *deliverer) beforehand(st *stream, r *journal.Record) error {
	policy, attempts := d.config.Failures, st.Work.delivery.attempts
	if policy.kind != block && attempts >= policy.attempts && d.sequencer.MayHaveEnded(st, r.Number) {
		return &failure{record: r, err: errEnded}
	}
	d.sequencer.NoteFailure(st, checkpoint.Failure{
		Number: r.Number, At: d.now(), Due: d.now().Add(d.config.nackPause(attempts + 1)), Reason: reasonOf(errEnded, attempts+1, checkpoint.MaxFailure),
		Attempts: attempts + 1, Resumed: st.Work.delivery.resumed, Begun: true,
	})
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	err := d.committer.list(ctx, st)
	st.Work.counted = err == nil
	return err
}

var errEnded = errors.New("the process ended during the attempt, or was killed")

// deliver sends a message and waits for its ack. If the key of the aggregate was destroyed, no one
// can ever read the event again, so deliver passes over it. Otherwise it would block later events
// forever.
func (d *deliverer) deliver(st *stream, stored *journal.Record) error {
	upcasts := d.history.Upcasts(stored.Aggregate.Type, stored.EventType)
	if stored.EventType != "" && !upcasts && !d.config.wants(stored.EventType) {
		d.stats.filtered.Add(1)
		d.ack(st, stored.Number)
		return nil
	}
	r, err := d.decode(stored)
	if errors.Is(err, journal.ErrKeyDestroyed) {
		d.stats.destroyed.Add(1)
		d.logger.Info("Event was passed over because the key of its aggregate was destroyed", watermill.LogFields{
			"aggregate_id": printable.Text(st.ID.Value), "number": stored.Number,
		})
		d.ack(st, stored.Number)
		return nil
	}
	if err != nil {
		return &failure{record: stored, err: err}
	}
	if d.history.Upcasts(r.Aggregate.Type, r.EventType) { // the type may have been encrypted
		return d.deliverCurrent(st, r)
	}
	if r != stored && !d.config.wants(r.EventType) {
		d.stats.filtered.Add(1)
		d.ack(st, r.Number)
		return nil
	}
	msg, err := d.unmarshal(r)
	if err != nil {
		return err
	}
	if err := d.send(st, r, msg, false); err != nil {
		return err
	}
	// the handler may have committed later events
	d.ack(st, max(r.Number, st.Stored.Load()))
	return nil
}

// deliverCurrent delivers a message for each event that upcasters make of a stored event. Messages
// that were acked are not delivered again if a later one fails.
func (d *deliverer) deliverCurrent(st *stream, stored *journal.Record) error {
	events, err := d.today(stored)
	if err != nil {
		return &failure{record: stored, err: err}
	}
	if len(events) == 0 {
		d.stats.filtered.Add(1)
	}
	st.Work.delivery.parts = len(events)
	for part := st.Work.delivery.part; part < len(events); part++ {
		msg, err := d.unmarshal(events[part])
		var failed *failure
		if errors.As(err, &failed) {
			failed.part, failed.parts = part, len(events)
		}
		if err != nil {
			return err
		}
		if len(events) > 1 {
			markPart(msg, part+1, len(events))
		}
		if err := d.send(st, events[part], msg, len(events) > 1); err != nil {
			return err
		}
		st.Work.delivery = delivery{number: stored.Number, part: part + 1, parts: len(events)}
	}
	d.ack(st, max(stored.Number, st.Stored.Load()))
	return nil
}

// today returns the events that upcasters make of a stored event, without the types that are not
// wanted. The first event has the id of the stored event. The others have the same id with their
// place appended.
func (d *deliverer) today(stored *journal.Record) (wanted []*journal.Record, err error) {
	defer recovered(&err, "an upcaster")
	events, err := d.history.Today(stored)
	if err != nil {
		return nil, err
	}
	for i, event := range events {
		if i > 0 {
			event.EventID += "/" + strconv.Itoa(i+1)
		}
		if d.config.wants(event.EventType) {
			wanted = append(wanted, event)
		}
	}
	return wanted, nil
}

// decode decodes a record. If the record has an encoding, which may need a key, decode has a time
// limit. Most records have none, and a timer for each would be measurable.
func (d *deliverer) decode(stored *journal.Record) (r *journal.Record, err error) {
	if stored.Encoding == "" {
		return d.journal.Decode(d.messageCtx, stored)
	}
	defer recovered(&err, "an encoding")
	ctx, cancel := context.WithTimeout(d.messageCtx, readTimeout)
	defer cancel()
	return d.journal.Decode(ctx, stored)
}

// send sends a message and waits for the answer. It returns nil for an ack. A message of a deferred
// event, or one of several messages of an event, has no position.
func (d *deliverer) send(st *stream, r *journal.Record, msg *message.Message, withoutPosition bool) error {
	if st.Work.position.batched.Load() {
		// A transaction of an earlier delivery is still running, and the handler would only wait
		// for it.
		return errCommitting
	}
	st.Work.delivery.deliveries++
	attempt := st.Work.delivery.deliveries
	if attempt > 1 && msg.Metadata != nil {
		msg.Metadata.Set(DeliveryAttemptKey, strconv.Itoa(attempt))
	}
	ctx := &messageContext{
		parent: d.messageCtx, record: r, attempt: attempt, withoutPosition: withoutPosition, position: Position{deliverer: d, stream: st, record: r, attempt: attempt},
	}
	defer ctx.end()
	msg.SetContext(ctx)
	select {
	case d.out <- msg:
		d.stats.delivered.Add(1)
	case <-d.stopping:
		return errStopped
	}
	began := time.Now()
	var deadline <-chan time.Time
	limit := d.config.AckDeadline
	if d.burst != nil {
		limit = d.burst.ackDeadline(limit, d.config.CloseTimeout)
	}
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		deadline = timer.C
	}
	select {
	case <-msg.Acked():
		d.stats.acked.Add(1)
		return nil
	case <-msg.Nacked():
		d.stats.nacked.Add(1)
		return ctx.failed(msg, errNacked)
	case <-deadline:
		d.stats.expired.Add(1)
		return ctx.failed(msg, errAckDeadline)
	case <-d.abandoned:
		d.logHanging(r, attempt, time.Since(began))
		return errStopped
	}
}

// mostHanging limits the lines about handlers that have not returned at the end of a subscription.
const mostHanging = 10

// logHanging logs that a handler has not returned within CloseTimeout.
func (d *deliverer) logHanging(r *journal.Record, attempt int, handling time.Duration) {
	if !d.IsLost() && d.hanging.Add(1) <= mostHanging {
		d.logger.Error("Handler has not returned within CloseTimeout; its event is delivered again", errHanging,
			fieldsOf(r.Aggregate, r.Number, r.EventType, attempt).Add(watermill.LogFields{"handling": handling}))
	}
}

var errHanging = errors.New("the handler neither acks nor nacks its message: limit its calls, or raise CloseTimeout")

// ack records that all events of a stream up to a number are handled.
func (d *deliverer) ack(st *stream, number uint64) {
	st.Work.delivery, st.Work.counted = delivery{}, true
	if d.sequencer.Ack(st, number) {
		d.pace.earn()
	}
}

// noteReconciled records a sign of a lag if only a reconciliation has found an event. The caller
// knows that the event is after the position of its aggregate. The reconciliation does not, for
// example if the group leaves out earlier events.
func (d *deliverer) noteReconciled(st *stream, r *journal.Record) {
	if d.sequencer.OnlyReconciled(st, r.Number) && d.now().Sub(r.WrittenAt) > d.config.Timing.TrailingDelay {
		d.stats.reconciled.Add(1)
		d.source.NoteLag(r.Aggregate, r.Number)
	}
}
