package archive

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// defaultConcurrency is the number of aggregates that are handled at the same time.
const defaultConcurrency = 8

// Selection restricts a run to one aggregate type or to one aggregate. The zero value selects
// everything. At most one field may be set.
type Selection struct {
	AggregateType string       // only aggregates of this type; empty: of all types
	Aggregate     aggregate.ID // only this aggregate; the zero value: all aggregates
}

func (s Selection) validate() error {
	switch {
	case s.Aggregate == (aggregate.ID{}):
		return nil
	case s.AggregateType != "":
		return fmt.Errorf("%w: Only has an aggregate and a type: set one of them", ErrInvalidOptions)
	}
	if err := s.Aggregate.Validate(); err != nil {
		return fmt.Errorf("%w: Only: %w", ErrInvalidOptions, err)
	}
	return nil
}

func (s Selection) isOne() bool { return s.Aggregate != (aggregate.ID{}) }

func (s Selection) aggregateType() string {
	if s.isOne() {
		return s.Aggregate.Type
	}
	return s.AggregateType
}

func (s Selection) has(id aggregate.ID) bool {
	if s.isOne() {
		return s.Aggregate == id
	}
	return s.AggregateType == "" || s.AggregateType == id.Type
}

// Progress counts what a run has done.
type Progress struct {
	Aggregates int64 // complete ones
	Events     int64 // the events so far
	Bytes      int64 // of the archive
	LeftOut    int64 // aggregates that the archive lacks, because its export could not read them
}

func (p *Progress) add(more Progress) {
	p.Aggregates += more.Aggregates
	p.Events += more.Events
	p.Bytes += more.Bytes
	p.LeftOut += more.LeftOut
}

// options are shared by all runs.
type options struct {
	only        Selection
	concurrency int
}

func (o *options) check(j *journal.Journal) error {
	if o.concurrency == 0 {
		o.concurrency = defaultConcurrency
	}
	switch {
	case j == nil:
		return fmt.Errorf("%w: the journal is nil", ErrInvalidOptions)
	case o.concurrency < 0:
		return fmt.Errorf("%w: Concurrency is negative: leave it 0 for %d", ErrInvalidOptions, defaultConcurrency)
	}
	return o.only.validate()
}
