package subscriber

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
)

// fairShare is how many messages a stream may have delivered before it goes
// behind the streams that wait for a lane.
const fairShare = 64

// errStopped ends a delivery because the shard ends.
var errStopped = errors.New("the shard has stopped")

// serve delivers a stream's events, one after the other, until nothing is left to do,
// something makes it wait, or others have waited long enough (again).
func (sh *shard) serve(st *stream) (again bool) {
	if !sh.enter() {
		return false
	}
	defer sh.serving.Done()
	if !st.claimed {
		if err := sh.claim(st); err != nil {
			sh.fail(st, err)
			return false
		}
	}
	if st.inherited != nil {
		if err := sh.takeOver(st); err != nil {
			sh.fail(st, err)
			return false
		}
	}
	for delivered := 0; ; delivered++ {
		if !sh.awaitStored() {
			return false
		}
		if delivered >= fairShare && sh.lanes.crowded() {
			return true
		}
		if st.verdict != nil {
			if err := sh.carryOut(st); err != nil {
				sh.fail(st, err)
				return false
			}
			continue
		}
		record, err := sh.nextRecord(st)
		if err == nil && record == nil {
			return false
		}
		if err == nil {
			err = sh.deliver(st, record)
		}
		if err != nil {
			sh.fail(st, err)
			return false
		}
	}
}

// claim finds out where the group is with a stream, and keeps former owners of the shard from
// moving it.
func (sh *shard) claim(st *stream) error {
	if sh.untouched() {
		sh.claimed(st, 0)
		return nil
	}
	ctx, cancel := context.WithTimeout(sh.messageCtx, readTimeout)
	defer cancel()
	position, found, err := sh.config.Positions.Claim(ctx, sh.group(), st.id, sh.epoch)
	if err != nil {
		return err
	}
	sh.stats.claims.Add(1)
	if !found && !sh.since.IsZero() {
		if position, err = sh.baseline(ctx, st); err != nil {
			return err
		}
	}
	sh.claimed(st, position)
	return nil
}

// baseline stores where a group that starts at a time begins with an aggregate: after the last
// event before that time.
func (sh *shard) baseline(ctx context.Context, st *stream) (uint64, error) {
	head, err := sh.raw.Head(ctx, st.id)
	if errors.Is(err, journal.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	before, err := sh.checkpoint.Baseline(ctx, head, sh.since)
	if err != nil {
		return 0, err
	}
	sh.stats.positions.Add(1)
	return before, sh.config.Positions.Advance(ctx, sh.group(), st.id, sh.epoch, 0, before)
}

// nextRecord returns the next event of a stream, read from the journal where the
// tail did not bring it. Nil: there is none, and the stream is idle.
func (sh *shard) nextRecord(st *stream) (*journal.Record, error) {
	for {
		record, from, to := sh.next(st)
		if record != nil || to == 0 {
			return record, nil
		}
		if err := sh.fetch(st, from, to); err != nil {
			return nil, err
		}
	}
}

// fetch reads events of a stream from the journal, as many as it may hold.
func (sh *shard) fetch(st *stream, from, to uint64) error {
	ctx, cancel := context.WithTimeout(sh.messageCtx, readTimeout)
	defer cancel()
	var records []*journal.Record
	size := 0
	for r, err := range sh.raw.Events(ctx, st.id, from, to) {
		var truncated *journal.TruncatedError
		if errors.As(err, &truncated) {
			if len(records) == 0 {
				sh.passTruncated(st, truncated.Before)
			}
			break
		}
		if err != nil {
			return err
		}
		if size += r.Size(); size > sh.budget.share() && len(records) > 0 {
			break
		}
		records = append(records, r)
	}
	if len(records) > 0 {
		sh.stats.fetched.Add(uint64(len(records)))
		sh.fill(st, records)
	}
	return nil
}

// passTruncated steps over events that were removed on purpose: those before a number, also those
// among them that are still there, for they may go at any moment.
func (sh *shard) passTruncated(st *stream, before uint64) {
	passed := sh.pass(st, before-1)
	sh.stats.truncated.Add(passed)
	sh.logger.Info("Events passed over, they were removed from the journal", watermill.LogFields{
		"aggregate_id": st.id.Value, "before": before, "events": passed,
	})
}

// deliver sends a message and waits for its ack. An event that nobody can ever read again, because
// the key of its aggregate was destroyed, is passed over: to wait for it would block what comes
// after it for good.
func (sh *shard) deliver(st *stream, stored *journal.Record) error {
	if stored.EventType != "" && !sh.config.wants(stored.EventType) {
		sh.stats.filtered.Add(1)
		sh.ack(st, stored.Number)
		return nil
	}
	r, err := sh.decode(stored)
	if errors.Is(err, journal.ErrKeyDestroyed) {
		sh.stats.destroyed.Add(1)
		sh.logger.Info("Event passed over, the key of its aggregate was destroyed", watermill.LogFields{
			"aggregate_id": st.id.Value, "number": stored.Number,
		})
		sh.ack(st, stored.Number)
		return nil
	}
	if err != nil {
		return &failure{record: stored, err: err}
	}
	if r != stored && !sh.config.wants(r.EventType) {
		sh.stats.filtered.Add(1)
		sh.ack(st, r.Number)
		return nil
	}
	msg, err := sh.config.Unmarshaler.Unmarshal(r)
	if err != nil {
		return &failure{record: r, err: fmt.Errorf("unmarshal event %d of %s: %w", r.Number, r.Aggregate, err)}
	}
	if st.deliveries == 0 && r.Number <= sh.sweptOf(st) && sh.now().Sub(r.OccurredAt) > sh.config.TrailingDelay {
		sh.stats.swept.Add(1)
	}
	return sh.send(st, r, msg)
}

// decode bounds what an encoding may take to get a key; most events have none, and a timer for each
// would be felt.
func (sh *shard) decode(stored *journal.Record) (*journal.Record, error) {
	if stored.Encoding == "" {
		return sh.journal.Decode(sh.messageCtx, stored)
	}
	ctx, cancel := context.WithTimeout(sh.messageCtx, readTimeout)
	defer cancel()
	return sh.journal.Decode(ctx, stored)
}

// send hands a message out and waits for the answer.
func (sh *shard) send(st *stream, r *journal.Record, msg *message.Message) error {
	if st.position.together.Load() {
		return errCommitting // from before, and the message would spend its time waiting for that
	}
	st.deliveries++
	attempt := st.deliveries
	if attempt > 1 && msg.Metadata != nil {
		msg.Metadata.Set(MetadataDeliveryAttempt, strconv.Itoa(attempt))
	}
	ctx := &messageContext{
		parent: sh.messageCtx, record: r, attempt: attempt, position: Position{shard: sh, stream: st, record: r, attempt: attempt},
	}
	defer ctx.end()
	msg.SetContext(ctx)
	select {
	case sh.out <- msg:
		sh.stats.delivered.Add(1)
	case <-sh.stopping:
		return errStopped
	}
	var deadline <-chan time.Time
	if sh.config.AckDeadline > 0 {
		timer := time.NewTimer(sh.config.AckDeadline)
		defer timer.Stop()
		deadline = timer.C
	}
	select {
	case <-msg.Acked():
		sh.stats.acked.Add(1)
		sh.ack(st, max(r.Number, st.position.stored.Load())) // the handler may have committed events behind it
		return nil
	case <-msg.Nacked():
		sh.stats.nacked.Add(1)
		return ctx.failed(msg, errNacked)
	case <-deadline:
		sh.stats.expired.Add(1)
		return ctx.failed(msg, errAckDeadline)
	case <-sh.abandoned:
		return errStopped
	}
}

// untouched reports that no position of the shard that is not in memory can have been stored: this
// is the first term of the shard in the group, and no stream was forgotten. Then there is nothing
// to claim, which spares a new group that reads all of history a write for each aggregate.
func (sh *shard) untouched() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.fresh && !sh.forgetful && sh.since.IsZero()
}

func (sh *shard) claimed(st *stream, acked uint64) {
	st.position.stored.Store(acked)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.claimed, st.acked = true, acked
	for len(st.buffer) > 0 && st.buffer[0].Number <= acked {
		st.dropFirst()
		sh.stats.duplicates.Add(1)
	}
}

// next is stream.next, and settles the stream where there is nothing to do.
func (sh *shard) next(st *stream) (r *journal.Record, from, to uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r, from, to = st.next(); r == nil && to == 0 {
		sh.settle(st)
	}
	return r, from, to
}

func (sh *shard) fill(st *stream, records []*journal.Record) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.fill(records)
}

// pass acks all events up to a number and returns how many.
func (sh *shard) pass(st *stream, number uint64) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	passed := number - st.acked
	st.hear(number)
	sh.acked(st, number)
	return passed
}

func (sh *shard) ack(st *stream, number uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.acked(st, number)
}

func (sh *shard) acked(st *stream, number uint64) {
	st.acked = number
	st.deliveries, st.attempts, st.failures, st.cautious, st.verdict = 0, 0, 0, false, nil
	if st.corrupt <= number {
		st.corrupt = 0
	}
	if st.position.stored.Load() < number {
		sh.dirty[st] = struct{}{}
	}
}

func (sh *shard) sweptOf(st *stream) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return st.swept
}
