package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// ImportOptions are what an import may be told. The zero value imports everything.
type ImportOptions struct {
	// Only leaves out what else the archive has.
	Only Selection
	// Concurrency is how many aggregates are written at once. Default: 8.
	Concurrency int
	// Progress, if any, is told after each page (up to 98 events or about 1 MB) how far the import
	// is. It is never called twice at a time.
	Progress func(ImportProgress)
	// Different, if any, decides what happens when an aggregate of the journal is not the one in
	// the archive: nil leaves it as it is and goes on, an error ends the import. Default: the error
	// that it would be given ends it. It is never called twice at a time.
	Different func(*HistoryError) error
}

// ImportProgress is how far an import has come.
type ImportProgress struct {
	Progress
	// Present are those of the events that the journal had already.
	Present int64
	// SnapshotsLeftOut are those for which an item or a transaction had no room, or in the packed
	// layout those that could not be written: another run tries them again. A load replays more
	// events then.
	SnapshotsLeftOut int64
}

// Import writes an archive into a journal, of any shard count, resolver, layout and attribute
// names. Events keep their ids, numbers, types, metadata, payloads, times and commit ids. Each page
// of the archive is one transaction with the head, so the journal is sound at every moment; no
// event is written before a digest has vouched for its line. In the packed layout, a page with the
// last event of a later page's snapshot is two transactions. The snapshot comes with the last page
// of its aggregate, so one whose early events are truncated cannot be loaded before that. The
// packed layout has it in a request of its own, which is repeated by the next run if it failed. In
// the classic layout an import that adds no events to an aggregate does not change its snapshot.
//
// An import that was cut off is run again, from the beginning of the archive: what is there is not
// written again. So is one of a later archive of the same journal. For each aggregate that the
// journal has, the last event that both have is compared, and all that follows is written. Where
// the two differ, or where one is deleted and the other is not, that is a [*HistoryError], and
// nothing of the aggregate is changed; see ImportOptions.Different.
//
// Of an aggregate that the export has left out, nothing is in the archive and nothing is changed:
// Progress.LeftOut counts them, and [VerifyArchive] names them.
//
// It costs one read of each head, and what appending the events in commits of a page would. Memory
// is bounded by a few pages for each aggregate that is under way. After an error of the archive,
// all that came before it is imported.
//
// Errors: [ErrInvalidOptions], [ErrNotArchive], [ErrTorn], [ErrDamaged], [*HistoryError], those of
// r, and those of journal: ErrConflict if others write to the same aggregates meanwhile,
// ErrOutcomeUnknown and ErrThrottled if repetition did not help, [*journal.TooLargeError] if an
// item hardly fitted where it came from, [*journal.CorruptItemError], ErrTableMissing, ErrAccess,
// the context's. After all of these it may be run again.
func Import(ctx context.Context, j *journal.Journal, r io.Reader, o ImportOptions) (ImportProgress, error) {
	shared := options{o.Only, o.Concurrency}
	if err := shared.check(j); err != nil {
		return ImportProgress{}, fmt.Errorf("import: %w", err)
	}
	im := &importer{journal: eventlog.Of(j).Raw(), options: o}
	err := shared.eachAggregate(ctx, newReaderFor(j, r), im.aggregate)
	if err != nil {
		err = fmt.Errorf("import: %w", err)
	}
	return im.done, err
}

// eachAggregate runs do for each aggregate of an archive, side by side, with its pages in order. An
// error of do ends it at once, one of the archive when all that has begun is done.
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
			// What was left out without a name may be one of those that are wanted.
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
	journal eventlog.Log
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
			im.report(p, 0, false)
			continue
		}
		var present int64
		var leftOut bool
		var err error
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

func (im *importer) report(p page, present int64, leftOut bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.done.add(p.progress())
	im.done.Present += present
	if leftOut {
		im.done.SnapshotsLeftOut++
	}
	if im.options.Progress != nil {
		im.options.Progress(im.done)
	}
}

// target is where an import goes on in an aggregate of the journal.
type target struct {
	version  uint64 // of the head, 0 for none
	compare  uint64 // the event that has to be the same, 0 for none
	done     bool   // no event is to be written
	snapshot bool   // with done: the snapshot is to be written
}

// target looks at what the journal has of an aggregate.
func (im *importer) target(ctx context.Context, archived journal.Head) (*target, error) {
	here, err := im.journal.Head(ctx, archived.Aggregate)
	if errors.Is(err, journal.ErrNotFound) {
		return &target{}, nil
	}
	if err != nil {
		return nil, err
	}
	different := func(reason string) error {
		return &HistoryError{Aggregate: here.Aggregate, Number: min(here.Version, archived.Version), Reason: reason}
	}
	t := &target{version: here.Version, done: archived.Version <= here.Version}
	t.snapshot = im.lacksSnapshot(here, archived)
	last := min(here.Version, archived.Version)
	switch deleted := !here.DeletedAt.IsZero(); {
	case deleted && archived.DeletedAt.IsZero():
		return nil, different("the journal has deleted it, the archive has not")
	case !deleted && !archived.DeletedAt.IsZero():
		return nil, different("the archive has deleted it, the journal has not")
	case deleted && here.Version != archived.Version:
		return nil, different("both have deleted it, at different versions")
	case deleted:
		return t, nil
	}
	if last >= max(first(here), first(archived)) {
		t.compare = last
		return t, nil
	}
	// The last event that both had is removed from one of them, so nothing proves that they are the
	// same.
	if !t.done {
		return nil, different("no event is left that both have, and more would have to be written")
	}
	return t, nil
}

// lacksSnapshot reports whether an import was cut off between events and snapshot, where these are
// not one transaction.
func (im *importer) lacksSnapshot(here, archived journal.Head) bool {
	return im.journal.SnapshotsApart() && here.Version == archived.Version && first(here) <= first(archived) &&
		archived.Snapshot != nil && (here.Snapshot == nil || here.Snapshot.Number < archived.Snapshot.Number)
}

// page writes what the journal does not have of a page.
func (im *importer) page(ctx context.Context, t *target, p page) (present int64, leftOut bool, err error) {
	records := p.records
	for len(records) > 0 && records[0].Number <= t.version {
		if records[0].Number == t.compare {
			if err := im.same(ctx, records[0]); err != nil {
				return 0, false, err
			}
		}
		records = records[1:]
	}
	present = int64(len(p.records) - len(records))
	if t.done && t.snapshot && p.last {
		// The events are there, so nothing but the snapshot is written.
		records, t.version = p.records, p.head.Version-uint64(len(p.records))
		if p.first {
			t.version = 0
		}
	} else if t.done || len(records) == 0 && !p.last {
		return present, false, nil
	}
	if before := untilSnapshot(p, records); before > 0 && im.journal.SnapshotsApart() {
		head := p.head
		head.Version, head.Snapshot = records[before-1].Number, nil
		if _, err := im.restore(ctx, eventlog.Restoration{Expected: t.version, Head: head, Records: records[:before]}); err != nil {
			return present, false, err
		}
		t.version, records = head.Version, records[before:]
	}
	head := p.head
	if !p.last {
		head.Version, head.Snapshot = records[len(records)-1].Number, nil
	}
	receipt, err := im.restore(ctx, eventlog.Restoration{Expected: t.version, Head: head, Records: records})
	if err != nil {
		return present, false, err
	}
	t.version = head.Version
	return present, receipt.SnapshotLeftOut, nil
}

// untilSnapshot returns how many of a page's records are up to the snapshot of the aggregate, if
// they are to be written before the others: the snapshot comes with a later page. It returns 0 if
// there is nothing to separate.
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

// same compares an event of the archive with that of the journal.
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

// difference names the first thing in which two events differ.
func difference(a, b *journal.Record) string {
	switch {
	case a.Equal(b):
		return ""
	case a.EventID != b.EventID:
		return "event id"
	case a.EventType != b.EventType:
		return "event type"
	case a.CommitID != b.CommitID:
		return "commit id"
	case !a.OccurredAt.Equal(b.OccurredAt):
		return "time"
	case a.Encoding != b.Encoding:
		return "encoding"
	case string(a.Payload) != string(b.Payload):
		return "payload"
	default:
		return "metadata"
	}
}

// restore is patient: an import of many events reaches the limits of tables that grow with it.
func (im *importer) restore(ctx context.Context, r eventlog.Restoration) (eventlog.Receipt, error) {
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
