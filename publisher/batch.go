package publisher

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// batch is what one Publish appends to one aggregate.
type batch struct {
	id       aggregate.ID
	indexes  []int // of the messages in Publish's arguments
	events   []eventlog.Event
	runs     []run
	expected *uint64 // the version that the aggregate must have

	done chan struct{} // closed when finished

	// Guarded by Publisher.mu while the batch is in a queue.
	next     int // run
	written  int // events
	finished bool
	err      error
}

// run is a part of a batch that is committed as a whole. Only a batch that does not fit into one
// transaction has several.
type run struct {
	from, to int // events
	bytes    int
}

func (r run) len() int { return r.to - r.from }

// fits reports whether a run goes into a transaction that already has some events.
func (r run) fits(events, bytes int) bool {
	return events+r.len() <= eventlog.MaxEvents && bytes+r.bytes <= eventlog.MaxEventsBytes
}

func (b *batch) add(index int, event eventlog.Event, bytes int) {
	one := run{from: len(b.events), to: len(b.events) + 1, bytes: bytes}
	b.indexes = append(b.indexes, index)
	b.events = append(b.events, event)
	if n := len(b.runs); n > 0 && one.fits(b.runs[n-1].len(), b.runs[n-1].bytes) {
		b.runs[n-1].to++
		b.runs[n-1].bytes += bytes
		return
	}
	b.runs = append(b.runs, one)
}

// failure says what has become of the batch's messages when the run that is next ended with err.
func (b *batch) failure(err error) *AppendError {
	unknown := b.written
	if errors.Is(err, journal.ErrOutcomeUnknown) {
		unknown = b.runs[b.next].to
	}
	var open attempts
	errors.As(err, &open)
	return &AppendError{
		Aggregate:  b.id,
		Written:    b.indexes[:b.written],
		Unknown:    b.indexes[b.written:unknown],
		NotWritten: b.indexes[unknown:],
		Attempts:   open,
		Err:        err,
	}
}
