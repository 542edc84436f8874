package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// ImportOptions configures an import. The zero value imports everything.
type ImportOptions struct {
	// Only restricts the import to an aggregate or a type. Default: everything.
	Only Selection
	// Concurrency is the number of aggregates that are written at the same time. Default: 8.
	Concurrency int
	// Progress, if set, is called after each page (up to 98 events or about 1 MB). It is never
	// called concurrently.
	Progress func(ImportProgress)
	// Different, if set, decides what happens if an aggregate of the journal differs from the
	// archive, or the archive lacks the snapshot that stands for truncated events. If it returns
	// nil, the import leaves the aggregate unchanged and continues. An error ends the import. It is
	// never called concurrently. Default: nil, which ends the import with the error.
	Different func(*HistoryError) error
}

// ImportProgress counts what an import has done.
type ImportProgress struct {
	Progress
	// Present is the number of events that the journal already had.
	Present int64
	// SnapshotsLeftOut is the number of snapshots that were not written: an item or a transaction
	// had no room, or in the layout Packed the write failed or another program had written the
	// snapshot. Another run tries again. Without the snapshot, a load replays more events.
	SnapshotsLeftOut int64
	// SnapshotError is the reason why the first of these snapshots was not written. It is nil if
	// there is none.
	SnapshotError error
}

// Import writes an archive into a journal. The journal may have any number of shards, resolver,
// layout and attribute names. Events keep their ids, numbers, types, metadata, payloads, times and
// commit ids.
//
// The journal is consistent at every moment, because each page of the archive is one transaction
// with the head. No event is written before a digest has verified its line. In the layout Packed,
// the last event of a snapshot must be the end of a commit. If a page contains this event and a
// later page contains the snapshot, the page is written in two transactions.
//
// The snapshot is written with the last page of its aggregate. An aggregate whose early events are
// truncated cannot be loaded before that. In the layout Packed the snapshot is written by a
// separate request; if it fails, the next run repeats it. In the layout Classic, an import that
// adds no events to an aggregate does not change its snapshot. A snapshot of a later event that the
// journal already has is never replaced.
//
// If an import was interrupted, run it again from the beginning of the archive. It does not write
// existing events again. The same is true for a later archive of the same journal. For each
// aggregate that the journal has, Import compares the last event that both have, and writes the
// events that follow. If the two differ, or if only one of the aggregates is deleted, it returns a
// [*HistoryError] and changes nothing of the aggregate; see ImportOptions.Different. It also
// returns one for an aggregate that the journal lacks, if early events are truncated and the
// archive has no snapshot that stands for them.
//
// Import changes nothing of an aggregate that the export left out. Progress.LeftOut counts these
// aggregates, and [VerifyArchive] names them.
//
// It costs one read of each head, and as much as appending the events in commits of a page. It
// keeps a few pages in memory for each aggregate that is being written. After an error of the
// archive, everything before it is imported.
//
// Errors: [ErrInvalidOptions], [ErrNotArchive], [ErrTorn], [ErrDamaged], [*HistoryError], the
// errors of r, and these of package journal: ErrConflict if other programs write to the same
// aggregates meanwhile, ErrOutcomeUnknown and ErrThrottled if repetition did not help,
// [*journal.TooLargeError] if an item hardly fitted into its former table, [*journal.VersionError]
// if a version of the archive is above 2^53, ErrInvalidCommit for a value that no export writes,
// [*journal.CorruptItemError], ErrTableMissing, ErrAccess; and the error of ctx. After each of
// these errors, Import may be run again.
func Import(ctx context.Context, j *journal.Journal, r io.Reader, o ImportOptions) (ImportProgress, error) {
	shared := options{o.Only, o.Concurrency}
	if err := shared.check(j); err != nil {
		return ImportProgress{}, fmt.Errorf("import: %w", err)
	}
	im := &importer{journal: j.Internal().Raw(), options: o}
	err := shared.eachAggregate(ctx, newReaderFor(j, r), im.aggregate)
	if err != nil {
		err = fmt.Errorf("import: %w", err)
	}
	return im.done, err
}

// eachAggregate runs do for each aggregate of an archive, concurrently, with its pages in order. An
// error of do ends it immediately. An error of the archive ends it after all started calls.
func (o options) eachAggregate(ctx context.Context, in *reader, do func(context.Context, <-chan page) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	slots := make(chan struct{}, o.concurrency)
	begin := func() chan page {
		pages := make(chan page, 1)
		workers.Add(1)
		go func() {
			defer workers.Done()
			defer func() { <-slots }()
			if err := do(ctx, pages); err != nil {
				cancel(err)
			}
		}()
		return pages
	}
	var pages chan page // of the aggregate that is being read
	read := func() error {
		for {
			p, err := in.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			// An aggregate that was left out without a name may be one of the selected ones.
			if p.head.Aggregate != (aggregate.ID{}) && !o.only.has(p.head.Aggregate) {
				continue
			}
			if p.first {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				pages = begin()
			}
			select {
			case pages <- p:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if p.last {
				close(pages)
				pages = nil
			}
		}
	}
	err := read()
	if pages != nil {
		close(pages)
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

type importer struct {
	journal *engine.Engine
	options ImportOptions

	mu   sync.Mutex
	done ImportProgress
}

// aggregate imports one aggregate.
func (im *importer) aggregate(ctx context.Context, pages <-chan page) error {
	var t *target
	var different *HistoryError
	for p := range pages {
		if p.leftOut != "" {
			im.report(p, 0, nil)
			continue
		}
		var present int64
		var leftOut, err error
		if t == nil {
			t, err = im.target(ctx, p.head)
		}
		if err == nil && different == nil {
			present, leftOut, err = im.page(ctx, t, p)
		}
		if errors.As(err, &different) {
			err = im.tolerate(different)
			t = &target{}
		}
		if err != nil {
			return err
		}
		im.report(p, present, leftOut)
	}
	return nil
}

func (im *importer) tolerate(different *HistoryError) error {
	if im.options.Different == nil {
		return different
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.options.Different(different)
}

// report counts a page. leftOut is the reason why its snapshot was not written.
func (im *importer) report(p page, present int64, leftOut error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.done.add(p.progress())
	im.done.Present += present
	if leftOut != nil {
		im.done.SnapshotsLeftOut++
		im.done.SnapshotError = cmp.Or(im.done.SnapshotError, leftOut)
	}
	if im.options.Progress != nil {
		im.options.Progress(im.done)
	}
}

// target is the place in an aggregate of the journal from which an import continues.
type target struct {
	version  uint64 // of the head; 0 if there is none
	compare  uint64 // the event that must be the same; 0 if there is none
	done     bool   // no event needs to be written
	snapshot bool   // set with done: the snapshot needs to be written
	later    bool   // the journal has a snapshot of a later event, which may cover a truncation
}

// target reads the head of an aggregate and decides from where to continue.
func (im *importer) target(ctx context.Context, archived journal.Head) (*target, error) {
	here, err := im.journal.Head(ctx, archived.Aggregate)
	if errors.Is(err, journal.ErrNotFound) {
		return &target{}, im.covered(archived)
	}
	if err != nil {
		return nil, err
	}
	different := func(reason string) error {
		return &HistoryError{Aggregate: here.Aggregate, Number: min(here.Version, archived.Version), Reason: reason}
	}
	t := &target{version: here.Version, done: archived.Version <= here.Version}
	t.snapshot = im.lacksSnapshot(here, archived)
	t.later = here.Snapshot != nil && archived.Snapshot != nil && here.Snapshot.Number > archived.Snapshot.Number
	last := min(here.Version, archived.Version)
	switch deleted := !here.DeletedAt.IsZero(); {
	case deleted && archived.DeletedAt.IsZero():
		return nil, different("it is deleted in the journal but not in the archive")
	case !deleted && !archived.DeletedAt.IsZero():
		return nil, different("it is deleted in the archive but not in the journal")
	case deleted && here.Version != archived.Version:
		return nil, different("it is deleted in both, at different versions")
	case deleted:
		return t, nil
	}
	if last >= max(first(here), first(archived)) {
		t.compare = last
		return t, nil
	}
	// The archive or the journal no longer has the last event that both had, so nothing proves that
	// they have the same history.
	if !t.done {
		return nil, different("no common event is left to compare, and the archive has later events")
	}
	return t, nil
}

// covered returns an error for an aggregate without the snapshot that stands for its truncated
// events. It could not be loaded. The layout Packed also needs the number of that snapshot.
func (im *importer) covered(archived journal.Head) error {
	if archived.TruncatedBefore <= 1 || !archived.DeletedAt.IsZero() {
		return nil
	}
	var reason string
	switch s := archived.Snapshot; {
	case s == nil:
		reason = "the archive has no snapshot that stands for the truncated events before it"
	case s.Number == 0 && im.journal.SnapshotsApart:
		reason = "the archive has a snapshot of another program for the truncated events before it, so its number is not known"
	default:
		return nil
	}
	return &HistoryError{Aggregate: archived.Aggregate, Number: archived.TruncatedBefore, Reason: reason}
}

// lacksSnapshot reports whether an import ended between the events and their snapshot, in a layout
// where these are not one transaction. If the archive has truncated all events and the journal has
// some, these need no snapshot, and nothing shows that the archived one belongs to them.
func (im *importer) lacksSnapshot(here, archived journal.Head) bool {
	if !im.journal.SnapshotsApart || here.Version != archived.Version || archived.Snapshot == nil {
		return false
	}
	fits := first(here) == first(archived) || first(here) < first(archived) && first(archived) <= archived.Version
	return fits && (here.Snapshot == nil || here.Snapshot.Number < archived.Snapshot.Number)
}

// page writes the part of a page that the journal does not have. leftOut is the reason why the
// snapshot was not written.
func (im *importer) page(ctx context.Context, t *target, p page) (present int64, leftOut, err error) {
	if t.later {
		p.head.Snapshot = nil
	}
	records := p.records
	for len(records) > 0 && records[0].Number <= t.version {
		if records[0].Number == t.compare {
			if err := im.same(ctx, records[0]); err != nil {
				return 0, nil, err
			}
		}
		records = records[1:]
	}
	present = int64(len(p.records) - len(records))
	if t.done && t.snapshot && p.last {
		// The events exist, so only the snapshot is written.
		records, t.version = p.records, p.head.Version-uint64(len(p.records))
		if p.first {
			t.version = 0
		}
	} else if t.done || len(records) == 0 && !p.last {
		return present, nil, nil
	}
	if before := untilSnapshot(p, records); before > 0 && im.journal.SnapshotsApart {
		head := p.head
		head.Version, head.Snapshot = records[before-1].Number, nil
		if _, err := im.restore(ctx, storage.Restoration{Expected: t.version, Head: head, Records: records[:before]}); err != nil {
			return present, nil, err
		}
		t.version, records = head.Version, records[before:]
	}
	head := p.head
	if !p.last {
		head.Version, head.Snapshot = records[len(records)-1].Number, nil
	}
	receipt, err := im.restore(ctx, storage.Restoration{Expected: t.version, Head: head, Records: records})
	if err != nil {
		return present, nil, err
	}
	t.version = head.Version
	if receipt.SnapshotLeftOut {
		leftOut = fmt.Errorf("snapshot of %s: %w", head.Aggregate, receipt.SnapshotError)
	}
	return present, leftOut, nil
}

// untilSnapshot returns the number of a page's records up to the last event of the snapshot. These
// must be written separately if a later page has the snapshot. It returns 0 if there is nothing to
// separate.
func untilSnapshot(p page, records []*journal.Record) int {
	if p.last || p.head.Snapshot == nil {
		return 0
	}
	for i, record := range records[:len(records)-1] {
		if record.Number == p.head.Snapshot.Number {
			return i + 1
		}
	}
	return 0
}

// same compares an event of the archive with the event of the journal.
func (im *importer) same(ctx context.Context, archived *journal.Record) error {
	for here, err := range im.journal.Events(ctx, archived.Aggregate, archived.Number, archived.Number) {
		if err != nil {
			return err
		}
		if what := difference(here, archived); what != "" {
			return &HistoryError{Aggregate: archived.Aggregate, Number: archived.Number, Reason: "the journal has another " + what + " than the archive"}
		}
	}
	return nil
}

// restore repeats failed requests, because a large import can exceed the capacity of tables that
// are still growing.
func (im *importer) restore(ctx context.Context, r storage.Restoration) (storage.Receipt, error) {
	for attempt := 1; ; attempt++ {
		receipt, err := im.journal.Restore(ctx, r)
		reason := cmp.Or(err, receipt.SnapshotError)
		again := errors.Is(reason, journal.ErrThrottled) || errors.Is(reason, journal.ErrContended) ||
			errors.Is(reason, journal.ErrUnavailable) || errors.Is(reason, journal.ErrOutcomeUnknown)
		if !again || attempt == 5 || ctx.Err() != nil {
			return receipt, err
		}
	}
}
