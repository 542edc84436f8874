package publisher

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// batch holds the events that one Publish appends to one aggregate.
type batch struct {
	id       aggregate.ID
	indexes  []int // indexes of the messages in the arguments of Publish
	events   []storage.Event
	runs     []run
	expected *uint64 // version that the aggregate must have, or nil

	done chan struct{} // closed when finished

	// Guarded by Publisher.mu while the batch is in a queue.
	next     int // index of the next run
	written  int // number of events written
	finished bool
	err      error
}

// run is a part of a batch that is committed as a whole. A batch has several runs only if it does
// not fit into one transaction.
type run struct {
	from, to int // indexes of events; to is exclusive
	bytes    int
}

func (r run) len() int { return r.to - r.from }

// fits reports whether a run fits into a transaction that already has some events.
func (r run) fits(events, bytes int) bool {
	return events+r.len() <= storage.MaxEvents && bytes+r.bytes <= storage.MaxEventsBytes
}

func (b *batch) add(index int, event storage.Event, bytes int) {
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

// failure returns the outcome of each message of the batch after the next run has failed with err.
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
