package archive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
)

// Report is what a verification has found.
type Report struct {
	Progress
	// Faults are all of them, in the order of their aggregates and numbers, or of an archive's
	// lines.
	Faults []Fault
}

// Err is nil if there are no faults, and otherwise an [ErrFaults] that lists the first of them.
func (r Report) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	const shown = 5
	texts := make([]string, 0, shown+1)
	for _, f := range r.Faults[:min(shown, len(r.Faults))] {
		texts = append(texts, f.Error())
	}
	if more := len(r.Faults) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s", ErrFaults, strings.Join(texts, "; "))
}

// FaultKind says what is wrong.
type FaultKind string

const (
	// Missing says: events are not there, though the head or later events say that they were
	// written.
	Missing FaultKind = "missing"
	// Beyond says: events are there that the head does not know of: it was put back, or they were
	// written without it. The next commit will be refused.
	Beyond FaultKind = "beyond the head"
	// Unreadable says: an item is not what it has to be; Err is the *journal.CorruptItemError, or
	// the [*LineError] of an archive.
	Unreadable FaultKind = "unreadable"
	// Stray says: nobody finds an item, because it is in the wrong shard, belongs to no aggregate,
	// or its aggregate has no head or, in the packed layout, no event 1 or no entry in the index of
	// aggregates; Err is the *journal.CorruptItemError.
	Stray FaultKind = "stray"
	// SnapshotAhead says: the latest snapshot is of an event beyond the head. It is not used, and
	// replaced in time.
	SnapshotAhead FaultKind = "snapshot ahead of the head"
	// SnapshotMismatch says: the latest snapshot is of a commit that is not in the history, as
	// after events were lost and others written in their place. It is not used, and replaced in
	// time. Only the packed layout stores of which commit a snapshot is.
	SnapshotMismatch FaultKind = "snapshot of another history"
	// Uncovered says: events were truncated, and no snapshot stands for all of them.
	Uncovered FaultKind = "truncated without a snapshot"
	// Different says: an event is not that of the archive.
	Different FaultKind = "different from the archive"
	// LeftOut says: the archive does not have an aggregate, because its export could not read it;
	// Err is the reason. See ExportOptions.Unreadable.
	LeftOut FaultKind = "left out of the archive"
)

// Fault is one thing that is wrong. It is an error.
type Fault struct {
	Kind      FaultKind
	Aggregate aggregate.ID // zero if unknown
	// From and To are the first and last of the events with this fault; 0 where it is not about
	// events.
	From, To uint64
	Err      error // may be nil
}

func (f Fault) Error() string {
	var b strings.Builder
	if f.Aggregate != (aggregate.ID{}) {
		fmt.Fprintf(&b, "%s: ", f.Aggregate)
	}
	switch f.From {
	case 0:
	case f.To:
		fmt.Fprintf(&b, "event %d: ", f.From)
	default:
		fmt.Fprintf(&b, "events %d to %d: ", f.From, f.To)
	}
	b.WriteString(string(f.Kind))
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	return b.String()
}

// Unwrap returns Err.
func (f Fault) Unwrap() error { return f.Err }

// same reports whether two inspections have found the same.
func (f Fault) same(other Fault) bool {
	return f.Kind == other.Kind && f.Aggregate == other.Aggregate && f.From == other.From && f.To == other.To
}

func compareFaults(a, b Fault) int {
	return cmp.Or(strings.Compare(a.Aggregate.Type, b.Aggregate.Type), strings.Compare(a.Aggregate.Value, b.Aggregate.Value),
		cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), strings.Compare(string(a.Kind), string(b.Kind)))
}

// collector gathers a report from workers.
type collector struct {
	progress func(Progress)
	mu       sync.Mutex
	report   Report
}

func (c *collector) fault(faults ...Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Faults = append(c.report.Faults, faults...)
}

func (c *collector) count(more Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.add(more)
	if c.progress != nil {
		c.progress(c.report.Progress)
	}
}

// sorted returns the report when all workers have ended. A head that a stray and its aggregate tell
// of counts once.
func (c *collector) sorted() Report {
	slices.SortStableFunc(c.report.Faults, compareFaults)
	c.report.Faults = slices.CompactFunc(c.report.Faults, func(a, b Fault) bool {
		return a.same(b) && a.Aggregate != (aggregate.ID{})
	})
	return c.report
}
