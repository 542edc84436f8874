package subscriber

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/journal"
)

// CommitAhead is [Position.Commit] for several events of the aggregate at once: that of the
// message, and those behind it that the subscriber has read already, in order, up to a number of
// them. When run succeeds all of them count as handled: with the ack of the message the subscriber
// goes on behind the last. Types that were not asked for are not among them, and are passed over
// with them.
//
// Any of several events may be why run fails, or they may be too many for [Config.AckDeadline]. So
// a delivery that fails after that is no failed attempt at the event of the message
// ([Config.Failures]): the message comes again at once, and then, as whenever it comes again and
// for another call with the same message, has no others with it. An event that cannot be handled is
// found out like this, and fails alone. The next events are taken half as many at a time, and one
// more with each success. A run for several events that does not end with its context keeps the
// message from coming again, as nothing shows then which of them is to blame.
//
// Errors: as Commit.
func (p *Position) CommitAhead(ctx context.Context, most int, run func(context.Context, Advance, []*journal.Record) error) error {
	store, err := p.deliverer.positionsOfTable()
	if err != nil {
		return err
	}
	if p.attempt > 1 || p.batched.Load() {
		most = 1
	}
	var events ahead
	position := &p.stream.position
	to := func() uint64 {
		if position.longest > 0 {
			most = min(most, position.longest)
		}
		events = p.deliverer.ahead(p.stream, p.record, most)
		return events.to
	}
	err = p.commit(ctx, to, func(ctx context.Context, a Advance) error {
		a.Item = store.advanceItem(a)
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

// attempt runs a transaction for a number of events, and learns from it how many are good to take.
// The caller holds the lock.
func (p *position) attempt(events int, run func() error) error {
	if events == 1 {
		err := run()
		if err == nil && p.longest == 1 {
			p.longest++
		}
		return err
	}
	longest := p.longest
	p.longest = events / 2 // also if run panics
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

// ahead are events that can be handled together.
type ahead struct {
	records             []*journal.Record
	to                  uint64 // the last of them, or of those passed over with them
	filtered, destroyed uint64
}

// ahead returns an event with those behind it that are in the buffer, as far as they can be
// decoded.
func (d *deliverer) ahead(st *stream, first *journal.Record, most int) ahead {
	a := ahead{records: []*journal.Record{first}, to: first.Number}
	for len(a.records) < most {
		next := d.sequencer.following(st, a.to, most-len(a.records))
		if len(next) == 0 || !d.takeIn(&a, next) {
			break
		}
	}
	return a
}

// takeIn adds events that follow, and reports whether all could be decoded.
func (d *deliverer) takeIn(a *ahead, next []*journal.Record) bool {
	for _, stored := range next {
		if d.history.Upcasts(stored.Aggregate.Type, stored.EventType) {
			return false // its own turn
		}
		r, err := stored, error(nil)
		if stored.EventType == "" || d.config.wants(stored.EventType) {
			r, err = d.decode(stored)
		}
		switch {
		case errors.Is(err, journal.ErrKeyDestroyed):
			a.destroyed++
		case err != nil:
			return false // its own turn will tell
		case d.history.Upcasts(r.Aggregate.Type, r.EventType): // one that is stored without its type
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
