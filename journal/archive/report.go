package archive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
)

// Report is the result of a verification.
type Report struct {
	Progress
	// Faults lists all faults, in the order of their aggregates and numbers, or of the lines of an
	// archive.
	Faults []Fault
}

// Err returns nil if there are no faults, and otherwise an [ErrFaults] that lists the first five.
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

// FaultKind is the kind of a [Fault].
type FaultKind string

const (
	// Missing means that events do not exist, although the head or later events show that they were
	// written.
	Missing FaultKind = "missing"
	// Beyond means that events exist beyond the version of the head: the head was put back, or the
	// events were written without it. The next commit will be refused.
	Beyond FaultKind = "beyond the head"
	// Unreadable means that an item cannot be decoded. Err is the *journal.CorruptItemError, or the
	// [*LineError] of an archive.
	Unreadable FaultKind = "unreadable"
	// Stray means that readers do not find an item. It is in the wrong shard, it belongs to no
	// aggregate, or its aggregate has no head. In the layout Packed, the aggregate has no event 1
	// or no entry in the index of aggregates. Err is the *journal.CorruptItemError.
	Stray FaultKind = "stray"
	// SnapshotAhead means that the latest snapshot is of an event beyond the head. It is not used,
	// and a later commit replaces it.
	SnapshotAhead FaultKind = "snapshot ahead of the head"
	// SnapshotMismatch means that the latest snapshot belongs to a commit that does not exist, for
	// example after events were lost and others were written in their place. It is not used, and a
	// later commit replaces it. Only the layout Packed can detect this.
	SnapshotMismatch FaultKind = "snapshot of another history"
	// Uncovered means that events were truncated, and no snapshot stands for all of them.
	Uncovered FaultKind = "truncated without a snapshot"
	// Different means that an event differs from the archive.
	Different FaultKind = "different from the archive"
	// LeftOut means that the archive lacks an aggregate, because its export could not read it. Err
	// is the reason. See ExportOptions.Unreadable.
	LeftOut FaultKind = "left out of the archive"
)

// Fault is one fault that a verification found. It is an error.
type Fault struct {
	Kind      FaultKind    // what is wrong
	Aggregate aggregate.ID // zero if unknown
	// From and To are the first and the last event with this fault. They are 0 if the fault is not
	// about events.
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

// same reports whether two inspections found the same fault.
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

// sorted returns the report after all workers have ended. If a stray and its aggregate report the
// same head, it counts once.
func (c *collector) sorted() Report {
	slices.SortStableFunc(c.report.Faults, compareFaults)
	c.report.Faults = slices.CompactFunc(c.report.Faults, func(a, b Fault) bool {
		return a.same(b) && a.Aggregate != (aggregate.ID{})
	})
	return c.report
}
