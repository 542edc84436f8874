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
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/journal"
)

// VerifyOptions configures [Verify] and [Compare]. The zero value verifies everything.
type VerifyOptions struct {
	// Only restricts the verification to an aggregate or a type. Default: everything.
	Only Selection
	// Concurrency is the number of aggregates that are read at the same time. Default: 8.
	Concurrency int
	// Progress, if set, is called as the verification proceeds. It is never called concurrently.
	Progress func(Progress)
}

// Verify verifies each aggregate of a journal:
//
//   - Its events exist without a gap from 1, or from the first event that is not truncated, to the
//     version of the head.
//   - Each event can be decoded, and its place agrees with its keys.
//   - No event is beyond the head.
//   - The snapshot is not ahead of the head, belongs to the existing history, and covers the
//     truncated events.
//
// Unless Only names one aggregate, Verify also finds items that no reader would find, such as
// events whose head is lost.
//
// The layout Packed has no heads: the last item of an aggregate shows its version. So a history
// that lost its last items looks like a shorter one. Only a snapshot of a lost item shows the loss.
//
// The report lists all faults. An error means that the verification did not end. Writers may
// continue meanwhile: Verify reads a suspect aggregate again, because a commit can be partly
// visible for a moment. Verify does not find a payload that was replaced by another readable one;
// see [Compare].
//
// It costs one read unit for each 4 KB of events, half a unit more for their second pass, and up to
// three units for each 4 KB of state. In the layout Packed it costs two or three more for each
// aggregate, because it reads the last commit separately. It keeps the event numbers of the
// aggregates that are being verified in memory, 8 bytes for each event.
//
// Errors: [ErrInvalidOptions], and these of package journal: ErrThrottled, ErrTableMissing,
// ErrAccess; and the error of ctx.
func Verify(ctx context.Context, j *journal.Journal, o VerifyOptions) (Report, error) {
	shared := options{o.Only, o.Concurrency}
	if err := shared.check(j); err != nil {
		return Report{}, fmt.Errorf("verify: %w", err)
	}
	v := &verifier{journal: j.Internal().Raw(), options: shared, found: collector{progress: o.Progress}}
	err := v.run(ctx)
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return v.found.sorted(), err
}

type verifier struct {
	options
	journal *engine.Engine
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
		// An aggregate without a head is one fault, however many pages contain its events.
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

// aggregate reports the faults on which three consecutive inspections agree, because a commit that
// is under way can be partly visible for a while.
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

// inspect inspects an aggregate once.
func (v *verifier) inspect(ctx context.Context, id aggregate.ID) (faults []Fault, events int64, err error) {
	var numbers []uint64
	found, err := v.journal.Inspect(ctx, id, func(r *journal.Record) { numbers = append(numbers, r.Number) })
	if err != nil {
		return nil, 0, err
	}
	for _, corrupt := range found.Corrupt {
		faults = append(faults, Fault{Kind: Unreadable, Aggregate: id, From: corrupt.Number, To: corrupt.Number, Err: corrupt})
		if corrupt.Number > 0 {
			numbers = append(numbers, corrupt.Number) // it exists
		}
	}
	slices.Sort(numbers)
	head := found.Head
	if head == nil {
		if len(found.Corrupt) == 0 {
			faults = append(faults, Fault{Kind: Stray, Aggregate: id, Err: fmt.Errorf("%w: %s has events but no head", journal.ErrNotFound, id)})
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
		case n < due: // truncated, but not removed yet
		case n > head.Version:
			// Adjacent ranges are merged.
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
	} else if n := found.SnapshotNumber; n > 0 && head.DeletedAt.IsZero() && (head.Snapshot == nil || head.Snapshot.Number < n) {
		faults = append(faults, Fault{Kind: SnapshotMismatch, Aggregate: id, From: n, To: n})
	}
	// The snapshot of another program has no number to compare.
	if s := head.Snapshot; head.DeletedAt.IsZero() && head.TruncatedBefore > 1 && (s == nil || s.Number > 0 && s.Number+1 < head.TruncatedBefore) {
		faults = append(faults, Fault{Kind: Uncovered, Aggregate: id, From: 1, To: head.TruncatedBefore - 1})
	}
	return faults, events, nil
}

// VerifyArchive reads an archive to its end, and verifies lines, numbers, digests and counts. The
// report lists all faults, each with the [*LineError] that names its line. After a fault in an
// aggregate, it continues with the next one. An aggregate that the export left out is a fault of
// the kind [LeftOut]. An error means that r could not be read.
func VerifyArchive(r io.Reader) (Report, error) {
	in := newReader(r)
	var report Report
	for {
		p, err := in.next()
		p.bytes = in.offset - report.Bytes // including bytes that belong to no page
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
