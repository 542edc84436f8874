package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// ExportOptions are what an export may be told. The zero value exports everything.
type ExportOptions struct {
	// Only restricts the export.
	Only Selection
	// Since, if not zero, leaves out aggregates of Only.AggregateType that have no events which
	// were written since then, as the tail shows them. So an archive that was imported before can
	// be followed by a small one. It needs Only.AggregateType, and such an export cannot be gone on
	// with: begin it again. Aggregates that were deleted since are not in it.
	Since time.Time
	// From goes on with an archive that a run left unfinished; see [Resume].
	From Position
	// Concurrency is how many aggregates are read at once. Default: 8.
	Concurrency int
	// Progress, if any, is told after each page (up to 98 events or about 1 MB) how large the
	// archive is now, including what was there when the run began. It is never called twice at a
	// time.
	Progress func(Progress)
	// Unreadable, if any, decides what happens when an aggregate cannot be read, because events are
	// missing or items corrupt or misplaced: nil leaves it out and goes on, an error ends the
	// export. The id is zero where it cannot be told. The archive names what was left out, with the
	// reason; nothing else of it is there. Default: the error that it would be given ends the
	// export, and each one after it, at the same place.
	//
	// It is not asked about what concerns the run, such as throttling, a missing table or the
	// context. It is never called twice at a time. With it, aggregates of more than 4 pages (see
	// Progress) are read twice, first to see whether they can be. One that is damaged in between
	// ends the export, and is left out when that goes on.
	Unreadable func(id aggregate.ID, err error) error
}

// Export writes an archive of a journal to w. Each aggregate is in it as it was at one moment, up
// to the version that its head had then; writers may go on meanwhile. A head that does not lie
// where its aggregate's is looked for is passed over if there is another one.
//
// It costs what reading all heads twice and all events once costs: for events half a read unit for
// each 4 KB in the layout journal.Classic, and one in journal.Packed. With ExportOptions.Unreadable
// it costs more.
//
// ExportOptions.Since goes by Record.WrittenAt, and reads an index that is eventually consistent.
// In the layout journal.Classic that time is the date of the event. So an aggregate whose new
// events all have earlier dates, as after an import, is left out.
//
// It keeps at most a few pages for each aggregate that is under way in memory, whatever the length
// of its history. It returns how large the archive is. An archive is complete when Export has
// returned without an error: its last line says so. Otherwise go on with [Resume]; also when the
// error is *journal.TruncatedError, because an aggregate was truncated or deleted while it was
// read.
//
// Errors: [ErrInvalidOptions], those of w, and those of journal: ErrNotFound if Only names an
// aggregate that is not there, [*journal.CorruptItemError] and [*aggregate.InvalidIDError] unless
// Unreadable leaves the aggregate out, [*journal.TruncatedError], ErrThrottled, ErrTableMissing,
// ErrAccess, the context's.
func Export(ctx context.Context, j *journal.Journal, w io.Writer, o ExportOptions) (Progress, error) {
	from := o.From
	if from.Offset > 0 && o.Only == (Selection{}) {
		o.Only = from.Only
	}
	shared := options{o.Only, o.Concurrency}
	if err := shared.check(j); err != nil {
		return Progress{}, fmt.Errorf("export: %w", err)
	}
	if !o.Since.IsZero() && (o.Only.AggregateType == "" || from.Offset > 0) {
		return Progress{}, fmt.Errorf("export: %w: Since needs Only.AggregateType, and no From", ErrInvalidOptions)
	}
	if from.Offset > 0 && from.Only != o.Only {
		return Progress{}, fmt.Errorf("export: %w: Only is not what the archive was begun with", ErrInvalidOptions)
	}
	x := &exporter{
		journal: eventlog.Of(j).Raw(), options: shared, after: from.After, since: o.Since, out: bufio.NewWriterSize(w, 64<<10),
		done:     Progress{Aggregates: from.Aggregates, Events: from.Events, Bytes: from.Offset, LeftOut: from.LeftOut},
		progress: o.Progress, unreadable: o.Unreadable,
	}
	if from.Complete {
		return x.done, nil
	}
	err := x.run(ctx)
	if flushed := x.out.Flush(); err == nil {
		err = flushed
	}
	if err != nil {
		return x.done, fmt.Errorf("export: %w", err)
	}
	return x.done, nil
}

type exporter struct {
	options
	journal    eventlog.Log
	after      aggregate.ID
	since      time.Time
	out        *bufio.Writer
	done       Progress
	progress   func(Progress)
	unreadable func(aggregate.ID, error) error
}

// exported is a page of one aggregate's lines, or why there is no more of them.
type exported struct {
	text   []byte
	events int
	last   bool

	err   error
	id    aggregate.ID // with err
	begun bool         // with err: pages of the aggregate came before
}

func (x *exporter) run(ctx context.Context) error {
	if x.done.Bytes == 0 {
		if err := x.putLine(headerLine(x.journal.Journal, x.only)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()

	// The queue holds aggregates in the order of their heads, however far their readers have come.
	queue := make(chan chan exported, x.concurrency)
	readers.Add(1)
	go func() {
		defer readers.Done()
		defer close(queue)
		x.enqueue(ctx, queue, &readers)
	}()
	for pages := range queue {
		complete := false
		for page := range pages {
			if err := x.write(page); err != nil {
				return err
			}
			complete = page.last
		}
		if !complete {
			return ctx.Err() // its reader had nobody to tell any more; nothing may follow what it left
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return x.putLine(line{Kind: kindTotal, Aggregates: x.done.Aggregates, Events: x.done.Events, LeftOut: x.done.LeftOut})
}

func (x *exporter) enqueue(ctx context.Context, queue chan<- chan exported, readers *sync.WaitGroup) {
	slots := make(chan struct{}, x.concurrency)
	for id, err := range x.ids(ctx) {
		pages := make(chan exported, 1)
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case queue <- pages:
		case <-ctx.Done():
			return
		}
		readers.Add(1)
		go func() {
			defer readers.Done()
			defer func() { <-slots }()
			defer close(pages)
			begun := false
			emit := func(page exported) error {
				select {
				case pages <- page:
					begun = true
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err == nil {
				err = x.read(ctx, id, emit)
			}
			if err != nil {
				_ = emit(exported{last: true, err: err, id: id, begun: begun}) // who no longer listens has an error already
			}
		}()
	}
}

// maxHeldPages bounds what is kept of an aggregate in order not to read it twice.
const maxHeldPages = 4

// readWhole emits an aggregate once all of it can be read, for what is out cannot be left out any
// more.
func (x *exporter) readWhole(ctx context.Context, id aggregate.ID, emit func(exported) error) error {
	var held []exported
	pages := 0
	err := x.readOnce(ctx, id, func(page exported) error {
		if pages++; pages <= maxHeldPages {
			held = append(held, page)
		} else {
			held = nil
		}
		return nil
	})
	if err == nil && pages > maxHeldPages {
		err = x.readOnce(ctx, id, emit)
	}
	for _, page := range held {
		if err == nil {
			err = emit(page)
		}
	}
	return err
}

// read emits an aggregate. One that is truncated or deleted meanwhile begins again if nothing of it
// is out yet.
func (x *exporter) read(ctx context.Context, id aggregate.ID, emit func(exported) error) error {
	attemptOnce := x.readOnce
	if x.unreadable != nil {
		attemptOnce = x.readWhole
	}
	for attempt := 0; ; attempt++ {
		emitted := false
		err := attemptOnce(ctx, id, func(page exported) error {
			emitted = true
			return emit(page)
		})
		if emitted || attempt == 2 || !errors.As(err, new(*journal.TruncatedError)) {
			return err
		}
	}
}

func (x *exporter) readOnce(ctx context.Context, id aggregate.ID, emit func(exported) error) error {
	head, err := x.journal.Head(ctx, id)
	if err != nil {
		return err
	}
	opening, out := headLine(head), newLines()
	if _, err := opening.head(); err != nil { // no reader would take it
		return &journal.CorruptItemError{
			Aggregate: id, Table: x.journal.Config().Tables.Snapshot,
			PartitionKey: eventlog.ShardKey(id.Type, x.journal.Shard(id)), SortKey: id.String() + "-0",
			Reason: "is a head that no archive can hold: " + err.Error(),
		}
	}
	if err := out.put(opening); err != nil {
		return err
	}
	page, size, events := exported{}, 0, int64(0)
	flush := func(kind string) error {
		if page.text, err = out.close(kind, events); err != nil {
			return err
		}
		page.last = kind == kindEnd
		err := emit(page)
		page, size = exported{}, 0
		return err
	}
	for record, err := range x.journal.Events(ctx, id, first(head), head.Version) {
		if err != nil {
			return err
		}
		if page.events == maxPageEvents || size >= maxPageBytes {
			if err := flush(kindSum); err != nil {
				return err
			}
		}
		if err := out.put(eventLine(record)); err != nil {
			return err
		}
		page.events++
		events++
		size += record.Size()
	}
	return flush(kindEnd)
}

func (x *exporter) write(page exported) error {
	if page.err != nil {
		return x.leaveOut(page)
	}
	if err := x.put(page.text); err != nil {
		return err
	}
	x.done.Events += int64(page.events)
	if page.last {
		x.done.Aggregates++
	}
	x.report()
	return nil
}

// leaveOut writes that there is nothing of an aggregate, if that is possible and wanted.
func (x *exporter) leaveOut(page exported) error {
	unreadable := errors.As(page.err, new(*journal.CorruptItemError)) ||
		errors.As(page.err, new(*aggregate.InvalidIDError)) && page.id != (aggregate.ID{}) // else it is about ExportOptions.From
	if page.begun || !unreadable || x.unreadable == nil {
		return page.err
	}
	if err := x.unreadable(page.id, page.err); err != nil {
		return err
	}
	l := line{Kind: kindLeftOut, Reason: page.err.Error()}
	if page.id != (aggregate.ID{}) {
		id := only(page.id)
		l.Aggregate = &id
	}
	out := newLines()
	if err := out.put(l); err != nil {
		return err
	}
	text, err := out.close(kindEnd, 0)
	if err != nil {
		return err
	}
	if err := x.put(text); err != nil {
		return err
	}
	x.done.LeftOut++
	x.report()
	return nil
}

func (x *exporter) report() {
	if x.progress != nil {
		x.progress(x.done)
	}
}

func (x *exporter) putLine(l line) error {
	out := newLines()
	if err := out.put(l); err != nil {
		return err
	}
	return x.put(out.text.Bytes())
}

func (x *exporter) put(text []byte) error {
	n, err := x.out.Write(text)
	x.done.Bytes += int64(n)
	return err
}
