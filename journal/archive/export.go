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
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// ExportOptions configures an export. The zero value exports everything.
type ExportOptions struct {
	// Only restricts the export to an aggregate or a type. Default: everything.
	Only Selection
	// Since, if not zero, restricts the export to aggregates that have events written since then,
	// according to the tail. Use it to bring the tables of an earlier import up to date with a
	// small archive. It needs Only.AggregateType. Such an export cannot be resumed: begin it again.
	// Aggregates that were deleted since are not in it. Default: zero.
	Since time.Time
	// From resumes an archive that an interrupted run left; see [ResumePosition].
	From Position
	// Concurrency is the number of aggregates that are read at the same time. Default: 8.
	Concurrency int
	// Progress, if set, is called after each page (up to 98 events or about 1 MB) with the size of
	// the archive. The size includes the part that existed when the run began. It is never called
	// concurrently.
	Progress func(Progress)
	// Unreadable, if set, decides what happens if an aggregate cannot be read, because events are
	// missing, or items are corrupt or misplaced. If it returns nil, the export leaves the
	// aggregate out and continues. An error ends the export. The id is zero if it is not known. The
	// archive then has the name of the aggregate and the reason, and nothing else of it. Default:
	// nil, which ends the export with err; a resumed export fails at the same place.
	//
	// Unreadable is not called for errors of the run, such as throttling, a missing table or the
	// end of the context. It is never called concurrently. If it is set, aggregates of more than 4
	// pages are read twice, first to verify that they can be read. An aggregate that is damaged in
	// between ends the export. When the export is resumed, it is left out.
	Unreadable func(id aggregate.ID, err error) error
}

// Export writes an archive of a journal to w. The archive has each aggregate as it was at one
// moment, up to the version that its head had then. Writers may continue meanwhile. A misplaced
// head is skipped if the right place has another one.
//
// It costs two reads of all heads and one of all events: for events half a read unit for each 4 KB
// in the layout journal.Classic, and one unit in journal.Packed. With ExportOptions.Unreadable it
// costs more.
//
// ExportOptions.Since compares Record.WrittenAt, and reads an index that is eventually consistent.
// In the layout journal.Classic, WrittenAt is the date of the event. So the export does not contain
// an aggregate whose new events all have earlier dates, for example after an import.
//
// Export keeps at most a few pages in memory for each aggregate that is being read, whatever the
// length of its history. It returns the size of the archive. An archive is complete if Export has
// returned without an error; its last line shows this. Otherwise resume it with [ResumePosition].
// This includes *journal.TruncatedError, which means that an aggregate was truncated or deleted
// while it was read.
//
// Errors: [ErrInvalidOptions], [*OtherJournalError], the errors of w, and these of package journal:
// ErrNotFound if Only names an aggregate that does not exist, [*journal.CorruptItemError] and
// [*aggregate.InvalidIDError] unless Unreadable leaves the aggregate out,
// [*journal.TruncatedError], ErrThrottled, ErrTableMissing, ErrAccess; and the error of ctx.
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
		return Progress{}, fmt.Errorf("export: %w: Only differs from the selection with which the archive was begun", ErrInvalidOptions)
	}
	if err := from.Check(j); err != nil {
		return Progress{}, fmt.Errorf("export: %w", err)
	}
	x := &exporter{
		journal: j.Internal().Raw(), options: shared, after: from.After, since: o.Since, out: bufio.NewWriterSize(w, 64<<10),
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
	journal    *engine.Engine
	after      aggregate.ID
	since      time.Time
	out        *bufio.Writer
	done       Progress
	progress   func(Progress)
	unreadable func(aggregate.ID, error) error
}

// exported is a page of the lines of one aggregate, or the error after which no more follow.
type exported struct {
	text   []byte
	events int
	last   bool

	err   error
	id    aggregate.ID // set with err
	begun bool         // set with err: earlier pages of the aggregate were written
}

func (x *exporter) run(ctx context.Context) error {
	if x.done.Bytes == 0 {
		if err := x.putLine(headerLine(&x.journal.Config, x.only)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()

	// The queue holds aggregates in the order of their heads, however far their readers are.
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
			// Its reader could not send the error. Nothing may follow an incomplete aggregate.
			return ctx.Err()
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
				// A failure to send means that the receiver has an error already.
				_ = emit(exported{last: true, err: err, id: id, begun: begun})
			}
		}()
	}
}

// maxHeldPages bounds the pages of an aggregate that are kept in memory, instead of reading it
// twice.
const maxHeldPages = 4

// readWhole emits an aggregate only after all of it could be read, because written pages cannot be
// left out any more.
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

// read emits an aggregate. If it is truncated or deleted meanwhile, read starts again, unless pages
// were already emitted.
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
	if _, err := opening.head(); err != nil { // no reader would accept it
		return &journal.CorruptItemError{
			Aggregate: id, Table: x.journal.Config.Tables.Snapshot,
			PartitionKey: storage.ShardKey(id.Type, x.journal.Shard(id)), SortKey: id.String() + "-0",
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

// leaveOut writes a left_out line for an aggregate, if that is possible and wanted.
func (x *exporter) leaveOut(page exported) error {
	unreadable := errors.As(page.err, new(*journal.CorruptItemError)) ||
		// Without an id, the error is about ExportOptions.From.
		errors.As(page.err, new(*aggregate.InvalidIDError)) && page.id != (aggregate.ID{})
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
