package subscriber

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/journal"
)

const (
	// fairShare is how many messages a stream may have delivered before it goes
	// behind the streams that wait for a lane.
	fairShare = 64
	// A stream that cannot be read or decoded is tried again after a pause that
	// doubles from minFailurePause to maxFailurePause.
	minFailurePause = 100 * time.Millisecond
	maxFailurePause = 30 * time.Second
)

// serve delivers a stream's events, one after the other, until nothing is left to do,
// something makes it wait, or others have waited long enough (again).
func (s *session) serve(st *stream) (again bool) {
	if !st.claimed {
		acked := uint64(0)
		if !st.shard.untouched() {
			var err error
			if acked, err = s.config.Positions.Claim(s.messageCtx, s.config.ConsumerGroup, st.id, s.lease.Epoch); err != nil {
				s.fail(st, err)
				return false
			}
			s.stats.claims.Add(1)
		}
		st.shard.claim(st, acked)
	}
	for delivered := 0; ; delivered++ {
		if s.isStopping() {
			return false
		}
		if delivered >= fairShare && s.lanes.crowded() {
			return true
		}
		record, err := s.nextRecord(st)
		if err != nil {
			s.fail(st, err)
			return false
		}
		if record == nil {
			return false
		}
		acked, err := s.deliver(st, record)
		if err != nil {
			s.fail(st, err)
			return false
		}
		if !acked {
			return false
		}
	}
}

// nextRecord gives the next event of a stream, read from the journal where the
// tail did not bring it. Nil: there is none, and the stream is idle.
func (s *session) nextRecord(st *stream) (*journal.Record, error) {
	for {
		record, from, to := st.shard.next(st)
		if record != nil || to == 0 {
			return record, nil
		}
		var records []*journal.Record
		size := 0
		for r, err := range s.raw.Events(s.messageCtx, st.id, from, to) {
			var truncated *journal.TruncatedError
			if errors.As(err, &truncated) {
				if len(records) == 0 {
					s.passTruncated(st, truncated.Before)
				}
				break
			}
			if err != nil {
				return nil, err
			}
			if size += r.Size(); size > s.streamBytes() && len(records) > 0 {
				break
			}
			records = append(records, r)
		}
		if len(records) > 0 {
			s.stats.fetched.Add(uint64(len(records)))
			st.shard.fill(st, records)
		}
	}
}

// passTruncated steps over events that were removed on purpose: those before a number, also those among them that are
// still there, for they may go at any moment.
func (s *session) passTruncated(st *stream, before uint64) {
	passed := st.shard.pass(st, before-1)
	s.stats.truncated.Add(passed)
	s.logger.Info("Events passed over, they were removed from the journal", watermill.LogFields{
		"aggregate_id": st.id.Value, "before": before, "events": passed,
	})
}

// deliver sends a message and waits for its ack. It tells false when the stream has
// to wait, or the session ends. An event that nobody can ever read again, because the key of its
// aggregate was destroyed, is passed over: to wait for it would block what comes after it for good.
func (s *session) deliver(st *stream, r *journal.Record) (acked bool, err error) {
	number := r.Number
	r, err = s.journal.Decode(s.messageCtx, r)
	if errors.Is(err, journal.ErrKeyDestroyed) {
		s.stats.destroyed.Add(1)
		s.logger.Info("Event passed over, the key of its aggregate was destroyed", watermill.LogFields{
			"aggregate_id": st.id.Value, "number": number,
		})
		st.shard.ack(st, number)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	msg, err := s.config.Unmarshaler.Unmarshal(r)
	if err != nil {
		return false, fmt.Errorf("unmarshal event %d of %s: %w", r.Number, r.Aggregate, err)
	}
	ctx, cancel := context.WithCancel(s.messageCtx)
	defer cancel()
	token := &Position{session: s, stream: st, number: r.Number}
	msg.SetContext(&messageContext{Context: ctx, record: r, position: token})

	select {
	case s.out <- msg:
		s.stats.delivered.Add(1)
	case <-s.stopping:
		return false, nil
	}

	select {
	case <-msg.Acked():
		s.stats.acked.Add(1)
		st.shard.ack(st, r.Number)
		return true, nil
	case <-msg.Nacked():
		s.stats.nacked.Add(1)
		s.delay(st, s.config.NackResendSleep)
		return false, nil
	case <-s.abandoned:
		return false, nil
	}
}

// fail makes a stream wait after an error, longer each time. Nothing is skipped: its own
// events wait, those of other aggregates do not.
func (s *session) fail(st *stream, err error) {
	if s.lost(err) || s.messageCtx.Err() != nil || s.isStopping() {
		return
	}
	st.failures++
	pause := maxFailurePause
	if st.failures < 10 {
		pause = min(maxFailurePause, minFailurePause<<(st.failures-1))
	}
	s.stats.failures.Add(1)
	s.logger.Error("Aggregate is blocked, will try again", err, watermill.LogFields{
		"aggregate_id": st.id.Value, "pause": pause, "attempt": st.failures,
	})
	s.delay(st, pause)
}

// delay frees the lane and brings the stream back after a pause.
func (s *session) delay(st *stream, pause time.Duration) {
	sh := st.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.state = delayed
	st.drop() // any number of streams may wait
	st.cautious = true
	resume := func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		st.state = active
		s.lanes.run(st)
	}
	time.AfterFunc(max(0, pause), resume)
}

// untouched tells that no position of the shard that is not in memory can have been stored: this is the
// first term of the group's lease, and no stream was forgotten. Then there is nothing to claim, which
// spares a new group that reads all of history a write for each aggregate.
func (sh *shard) untouched() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.session.firstTerm && !sh.forgetful
}

func (sh *shard) claim(st *stream, acked uint64) {
	st.position.stored.Store(acked)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.claimed, st.acked = true, acked
	for len(st.buffer) > 0 && st.buffer[0].Number <= acked {
		st.dropFirst()
		sh.session.stats.duplicates.Add(1)
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

// pass acks all events up to a number and tells how many.
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
	st.failures, st.cautious = 0, false
	if st.position.stored.Load() < number {
		sh.dirty[st] = struct{}{}
	}
}

func isFenced(err error) bool { return errors.Is(err, ErrFenced) }
