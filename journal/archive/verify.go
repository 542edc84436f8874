package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// VerifyOptions are what [Verify] and [Compare] may be told. The zero value verifies everything.
type VerifyOptions struct {
	// Only restricts the verification.
	Only Selection
	// Concurrency is how many aggregates are looked at at once. Default: 8.
	Concurrency int
	// Progress, if any, is told how far the verification is. It is never called twice at a time.
	Progress func(Progress)
}

// Verify looks at each aggregate of a journal: its events are there from 1, or where it is
// truncated, to the head's version without a gap; each can be read and lies where its keys say; no
// event is beyond the head; the snapshot is not ahead of the head, is of the history that is there,
// and covers what is truncated. Unless Only names one aggregate, it also looks for what nobody
// would find, such as events whose head is lost.
//
// The packed layout has no heads: the last item of an aggregate shows its version. So a history
// that has lost its last items looks like a shorter one. Only a snapshot of a lost item shows that.
//
// All faults are in the report; an error says that the verification did not come to its end.
// Writers may go on meanwhile: what looks like a fault is looked at again, as a commit can show in
// part for a moment. A payload that somebody overwrote with another that can be read is not found:
// see [Compare].
//
// It costs one read unit for each 4 KB of events and half of one for their second pass, and for
// each 4 KB of state up to three. In the packed layout two or three more for each aggregate, whose
// last commit is read by itself. It keeps the numbers of the aggregates that are under way, 8
// bytes for each event, in memory.
//
// Errors: [ErrInvalidOptions], and those of journal: ErrThrottled, ErrTableMissing, ErrAccess, the
// context's.
func Verify(ctx context.Context, j *journal.Journal, o VerifyOptions) (Report, error) {
	shared := options{o.Only, o.Concurrency}
	if err := shared.check(j); err != nil {
		return Report{}, fmt.Errorf("verify: %w", err)
	}
	v := &verifier{journal: eventlog.Of(j).Raw(), options: shared, found: collector{progress: o.Progress}}
	err := v.run(ctx)
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return v.found.sorted(), err
}

type verifier struct {
	options
	journal eventlog.Log
	found   collector
}

func (v *verifier) run(ctx context.Context) error {
	if v.only.isOne() {
		return v.aggregate(ctx, v.only.Aggregate)
	}
	if err := v.heads(ctx); err != nil {
		return err
	}
	for stray, err := range v.journal.Strays(ctx, v.only.AggregateType) {
		if err != nil {
			return err
		}
		// One fault for an aggregate without a head, however many pages it is on.
		v.found.fault(Fault{Kind: Stray, Aggregate: stray.Aggregate, Err: stray})
	}
	return nil
}

func (v *verifier) heads(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	defer workers.Wait()
	slots := make(chan struct{}, v.concurrency)
	query := journal.HeadsQuery{AggregateType: v.only.AggregateType, Corrupt: func(err *journal.CorruptItemError) {
		v.found.fault(Fault{Kind: Unreadable, Aggregate: err.Aggregate, Err: err})
	}}
	for head, err := range v.journal.Heads(ctx, query) {
		if err != nil {
			cancel(err)
			break
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		workers.Add(1)
		go func() {
			defer workers.Done()
			defer func() { <-slots }()
			if err := v.aggregate(ctx, head.Aggregate); err != nil {
				cancel(err)
			}
		}()
	}
	workers.Wait()
	return context.Cause(ctx)
}

// aggregate reports what three inspections in a row agree on: a commit that is under way can show
// in part for a while.
func (v *verifier) aggregate(ctx context.Context, id aggregate.ID) error {
	const attempts, wanted = 6, 2
	var before []Fault
	for attempt, agreements := 0, 0; ; attempt++ {
		faults, events, err := v.inspect(ctx, id)
		if err != nil {
			return err
		}
		agreed := slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return !slices.ContainsFunc(before, f.same) })
		if agreements++; len(agreed) < len(faults) {
			agreements = 0
		}
		if len(faults) == 0 || agreements == wanted || attempt == attempts {
			v.found.fault(agreed...)
			v.found.count(Progress{Aggregates: 1, Events: events})
			return nil
		}
		before = faults
		select {
		case <-time.After(20 * time.Millisecond << attempt):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// inspect looks at an aggregate once.
func (v *verifier) inspect(ctx context.Context, id aggregate.ID) (faults []Fault, events int64, err error) {
	var numbers []uint64
	found, err := v.journal.Inspect(ctx, id, func(r *journal.Record) { numbers = append(numbers, r.Number) })
	if err != nil {
		return nil, 0, err
	}
	for _, corrupt := range found.Corrupt {
		faults = append(faults, Fault{Kind: Unreadable, Aggregate: id, From: corrupt.Number, To: corrupt.Number, Err: corrupt})
		if corrupt.Number > 0 {
			numbers = append(numbers, corrupt.Number) // it is there
		}
	}
	slices.Sort(numbers)
	head := found.Head
	if head == nil {
		if len(found.Corrupt) == 0 {
			faults = append(faults, Fault{Kind: Stray, Aggregate: id, Err: fmt.Errorf("%w: %s has events and no head", journal.ErrNotFound, id)})
		}
		return faults, int64(len(numbers)), nil
	}
	missing := func(from, to uint64) {
		if from <= to {
			faults = append(faults, Fault{Kind: Missing, Aggregate: id, From: from, To: to})
		}
	}
	due := first(*head)
	for _, n := range numbers {
		switch {
		case n < due: // truncated, but not gone yet
		case n > head.Version:
			// Ranges that touch are one.
			if last := len(faults) - 1; last >= 0 && faults[last].Kind == Beyond && faults[last].To+1 == n {
				faults[last].To = n
			} else {
				faults = append(faults, Fault{Kind: Beyond, Aggregate: id, From: n, To: n})
			}
		default:
			missing(due, n-1)
			due = n + 1
			events++
		}
	}
	missing(due, head.Version)
	if found.SnapshotNumber > head.Version {
		faults = append(faults, Fault{Kind: SnapshotAhead, Aggregate: id, From: found.SnapshotNumber, To: found.SnapshotNumber})
	} else if n := found.SnapshotNumber; n > 0 && head.DeletedAt.IsZero() && (head.Snapshot == nil || head.Snapshot.Number != n) {
		faults = append(faults, Fault{Kind: SnapshotMismatch, Aggregate: id, From: n, To: n})
	}
	// A foreign writer's snapshot has no number that could be compared.
	if s := head.Snapshot; head.DeletedAt.IsZero() && head.TruncatedBefore > 1 && (s == nil || s.Number > 0 && s.Number+1 < head.TruncatedBefore) {
		faults = append(faults, Fault{Kind: Uncovered, Aggregate: id, From: 1, To: head.TruncatedBefore - 1})
	}
	return faults, events, nil
}

// VerifyArchive reads an archive to its end: lines, numbers, digests, counts. All faults are in the
// report, each with the [*LineError] that names its line; an aggregate with a fault is passed over,
// and the next one is looked at. What the export has left out is a fault too, of the kind
// [LeftOut]. An error says that r could not be read.
func VerifyArchive(r io.Reader) (Report, error) {
	in := newReader(r)
	var report Report
	for {
		p, err := in.next()
		p.bytes = in.offset - report.Bytes // also of what is no page
		report.add(p.progress())
		var fault *LineError
		switch {
		case p.leftOut != "":
			report.Faults = append(report.Faults, p.fault())
		case errors.Is(err, io.EOF):
			return report, nil
		case errors.As(err, &fault):
			report.Faults = append(report.Faults, Fault{Kind: Unreadable, Aggregate: fault.Aggregate, Err: fault})
			if !errors.Is(fault, ErrDamaged) {
				return report, nil
			}
		case err != nil:
			return report, fmt.Errorf("verify archive: %w", err)
		}
	}
}
