package subscriber

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/internal/sequence"
)

// nextRecord returns the next event of a stream, and reads it from the journal if the tail did not
// bring it. It returns nil if there is none and the stream is idle.
func (d *deliverer) nextRecord(st *stream) (*journal.Record, error) {
	for {
		record, from, to := d.sequencer.Next(st)
		if record != nil {
			return record, nil
		}
		if to == 0 {
			if d.sequencer.Continues(st) {
				d.pace.earn()
			}
			return nil, nil
		}
		if to == sequence.Unknown {
			d.follow(st, from-1)
			continue
		}
		if err := d.fetch(st, from, to); err != nil {
			return nil, err
		}
	}
}

// fetch reads events of a stream from the journal, up to the stream's share of the budget.
func (d *deliverer) fetch(st *stream, from, to uint64) error {
	ctx, cancel := context.WithTimeout(d.messageCtx, readTimeout)
	defer cancel()
	read := batch{share: d.budget.Share()}
	for r, err := range d.raw.Events(ctx, st.ID, from, to) {
		var truncated *journal.TruncatedError
		if errors.As(err, &truncated) {
			if len(read.records) == 0 {
				d.passTruncated(st, truncated.Before)
			}
			break
		}
		if err != nil {
			return err
		}
		if !read.add(r) {
			break
		}
	}
	if len(read.records) > 0 {
		d.stats.fetched.Add(uint64(len(read.records)))
		d.sequencer.Fill(st, read.records)
	}
	return nil
}

// follow reads what follows an event, because a hint says that there is something. A failure does
// not count, since the next read of the tail finds what there is.
func (d *deliverer) follow(st *stream, after uint64) {
	ctx, cancel := context.WithTimeout(d.messageCtx, readTimeout)
	defer cancel()
	read := batch{share: d.budget.Share()}
	hinted := d.sequencer.TakeHint(st)
	found, err := d.raw.After(ctx, st.ID, after, hinted, read.add)
	if err != nil {
		d.leaveHint(err)
		d.logger.Debug("Cannot read what a wake-up has announced", watermill.LogFields{"aggregate_id": printable.Text(st.ID.Value), "err": err})
	}
	d.stats.hints.Add(1)
	d.stats.fetched.Add(uint64(len(read.records)))
	d.sequencer.Followed(st, read.records, max(found, after), hinted, read.full)
}

// leaveHint records in a burst that a hint was not followed because of an error. It is an error of
// the burst, unless only the aggregate cannot be read, because that would not change soon. A hint
// that leads to nothing is done.
func (d *deliverer) leaveHint(err error) {
	if d.burst == nil || errors.Is(err, errNothingNew) {
		return
	}
	d.burst.leave(1, d.now())
	if !errors.As(err, new(*journal.CorruptItemError)) {
		d.burst.failed(refusal(err))
	}
}

// batch holds events of a stream that are read at once.
type batch struct {
	share   int // of the budget, in bytes
	records []*journal.Record
	size    int
	full    bool // there were more events than fit
}

// add adds an event, unless the batch is full. The first event always fits.
func (b *batch) add(r *journal.Record) bool {
	size := b.size + sequence.SizeOf(r)
	if b.full = len(b.records) > 0 && (size > b.share || len(b.records) == sequence.ReadAhead); b.full {
		return false
	}
	b.size, b.records = size, append(b.records, r)
	return true
}

// passTruncated passes over the events before a number, because they were removed on purpose. Some
// of them may still exist, but can disappear at any moment.
func (d *deliverer) passTruncated(st *stream, before uint64) {
	passed := d.sequencer.Pass(st, before-1)
	d.stats.truncated.Add(passed)
	d.logger.Info("Events were passed over because they were removed from the journal", watermill.LogFields{
		"aggregate_id": printable.Text(st.ID.Value), "before": before, "events": passed,
	})
}
