package subscriber

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/journal"
)

// CommitAhead is like [Position.Commit], for several events of the aggregate in one transaction:
// the event of the message, and events after it that the subscriber has already read, in order.
// most is the maximum number of events. If run succeeds, all of them count as handled, and after
// the ack of the message the subscriber continues with the next event. Events whose type is not in
// [Config].EventTypes are not passed to run, and count as handled too.
//
// If run fails, any of the events may be the reason, or there may be too many of them for
// [Config.AckDeadline]. So a failure of a run for several events is not a failed attempt at the
// event of the message ([Config.Failures]): the message is delivered again at once. A message that
// is delivered again carries only its own event, and so does a second call with the same message.
// In this way an event that cannot be handled fails alone. After a failure the maximum is half of
// the number of events that failed, and rises by one with each success. A run for several events
// that does not return after the end of its context blocks the aggregate, because the event that is
// the reason is not known.
//
// Errors: as Commit.
func (p *Position) CommitAhead(ctx context.Context, most int, run func(context.Context, Advance, []*journal.Record) error) error {
	store, err := p.deliverer.positionsOfTable()
	if err != nil {
		return err
	}
	return p.commitAhead(ctx, most, func(ctx context.Context, a Advance, records []*journal.Record) error {
		a.Item = store.advanceItem(a)
		return run(ctx, a, records)
	})
}

// CommitAheadIn is like [Position.CommitAhead], for positions in another store. The function run
// has the same duties as that of [Position.CommitIn].
//
// Errors: as CommitIn.
func (p *Position) CommitAheadIn(
	ctx context.Context, store PositionStore, most int, run func(context.Context, Advance, []*journal.Record) error,
) error {
	if err := p.isIn(store); err != nil {
		return err
	}
	return p.commitAhead(ctx, most, run)
}

func (p *Position) commitAhead(ctx context.Context, most int, run func(context.Context, Advance, []*journal.Record) error) error {
	if p.attempt > 1 || p.batched.Load() {
		most = 1
	}
	var events ahead
	position := &p.stream.Work.position
	to := func() uint64 {
		if position.longest > 0 {
			most = min(most, position.longest)
		}
		events = p.deliverer.ahead(p.stream, p.record, most)
		return events.to
	}
	err := p.commit(ctx, to, func(ctx context.Context, a Advance) error {
		if len(events.records) > 1 {
			p.batched.Store(true)
		}
		return position.attempt(len(events.records), func() error { return run(ctx, a, events.records) })
	})
	if err == nil {
		p.deliverer.stats.filtered.Add(events.filtered)
		p.deliverer.stats.destroyed.Add(events.destroyed)
	}
	return err
}

// attempt runs a transaction for a number of events, and adjusts the maximum by its result. The
// caller holds the lock.
func (p *streamPosition) attempt(events int, run func() error) error {
	if events == 1 {
		err := run()
		if err == nil && p.longest == 1 {
			p.longest++
		}
		return err
	}
	longest := p.longest
	p.longest = events / 2 // also holds if run panics
	p.batched.Store(true)
	defer p.batched.Store(false)
	err := run()
	if err == nil {
		p.longest = longest
		if events == longest {
			p.longest++
		}
	}
	return err
}

// ahead holds events that can be handled together.
type ahead struct {
	records             []*journal.Record
	to                  uint64 // the last of them, or of the events that count as handled with them
	filtered, destroyed uint64
}

// ahead returns an event together with the events after it that are in the buffer. It stops before
// an event that cannot be decoded.
func (d *deliverer) ahead(st *stream, first *journal.Record, most int) ahead {
	a := ahead{records: []*journal.Record{first}, to: first.Number}
	for len(a.records) < most {
		next := d.sequencer.Following(st, a.to, most-len(a.records))
		if len(next) == 0 || !d.takeIn(&a, next) {
			break
		}
	}
	return a
}

// takeIn adds events that follow, and reports whether all could be added.
func (d *deliverer) takeIn(a *ahead, next []*journal.Record) bool {
	for _, stored := range next {
		if d.history.Upcasts(stored.Aggregate.Type, stored.EventType) {
			return false // it is delivered alone
		}
		r, err := stored, error(nil)
		if stored.EventType == "" || d.config.wants(stored.EventType) {
			r, err = d.decode(stored)
		}
		switch {
		case errors.Is(err, journal.ErrKeyDestroyed):
			a.destroyed++
		case err != nil:
			return false // its own delivery reports the error
		case d.history.Upcasts(r.Aggregate.Type, r.EventType): // its type was stored encoded
			return false
		case !d.config.wants(r.EventType):
			a.filtered++
		default:
			a.records = append(a.records, r)
		}
		a.to = stored.Number
	}
	return true
}
