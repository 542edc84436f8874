package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// page is a run of events of one aggregate whose lines were verified by a digest.
type page struct {
	head    journal.Head // of the aggregate, on each of its pages
	first   bool
	last    bool
	records []*journal.Record
	bytes   int64
	// leftOut is the reason why the archive lacks the aggregate, which may not even be named.
	leftOut string
}

// progress returns the counts of this page.
func (p *page) progress() Progress {
	more := Progress{Events: int64(len(p.records)), Bytes: p.bytes}
	switch {
	case p.leftOut != "":
		more.LeftOut = 1
	case p.last:
		more.Aggregates = 1
	}
	return more
}

// fault returns the fault of a page whose aggregate was left out.
func (p *page) fault() Fault {
	return Fault{Kind: LeftOut, Aggregate: p.head.Aggregate, Err: errors.New(p.leftOut)}
}

// reader reads an archive page by page.
type reader struct {
	in     *bufio.Reader
	unit   time.Duration // unit to which times are rounded down; 0 for none
	text   []byte
	number int      // of the last line that was read
	done   Position // the place after the last complete aggregate
	offset int64    // the place after the last line that was read

	header  *line
	leftOut int64 // number of aggregates so far that were left out
	total   bool
	faulty  bool // next has returned an error
	seeks   bool // it skips lines up to the next aggregate, since the last one is damaged

	// State of the aggregate that is being read.
	open   bool
	page   page
	due    uint64 // number of the event that must come next
	events int64
	size   int
	start  int64 // where the page begins
	sum    hash.Hash
}

// newReaderFor returns a reader that rounds times down to the unit of a journal.
func newReaderFor(j *journal.Journal, r io.Reader) *reader {
	in := newReader(r)
	in.unit = j.Internal().Config.OccurredAtUnit
	return in
}

func newReader(r io.Reader) *reader { return &reader{in: bufio.NewReaderSize(r, 64<<10)} }

// next returns a page, io.EOF after a complete archive, a [*LineError], or the error of the
// underlying reader. After a LineError other than [ErrNotArchive] or [ErrTorn], another call
// continues with the next aggregate.
func (r *reader) next() (page, error) {
	for {
		text, err := r.readLine()
		if errors.Is(err, io.EOF) {
			if r.total {
				return page{}, io.EOF
			}
			err = r.fault(ErrTorn, "the file ends before its total line: resume the export, or copy the archive again")
		}
		var p *page
		if err == nil {
			p, err = r.take(text)
		}
		if err != nil {
			r.faulty, r.seeks, r.open = true, true, false
			return page{}, err
		}
		if p != nil {
			return *p, nil
		}
	}
}

func (r *reader) fault(kind error, format string, args ...any) *LineError {
	e := &LineError{Line: r.number, Kind: kind, Reason: fmt.Sprintf(format, args...)}
	if r.open {
		e.Aggregate = r.page.head.Aggregate
	}
	return e
}

// readLine returns a line with its line end, or io.EOF if no line begins.
func (r *reader) readLine() ([]byte, error) {
	r.text = r.text[:0]
	size := 0
	for {
		part, err := r.in.ReadSlice('\n')
		if size += len(part); size <= maxLineBytes {
			r.text = append(r.text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		r.number++
		torn := errors.Is(err, io.EOF)
		switch {
		case torn && size == 0:
			return nil, io.EOF
		case err != nil && !torn:
			return nil, err
		}
		r.offset += int64(size)
		switch {
		case r.number == 1 && !looksLikeHeader(r.text):
			return nil, r.fault(ErrNotArchive, "it does not begin like an archive")
		case size > maxLineBytes:
			return nil, r.fault(ErrDamaged, "it has %d bytes, but a line has at most %d", size, maxLineBytes)
		case torn:
			return nil, r.fault(ErrTorn, "the file ends within it: resume the export, or copy the archive again")
		}
		return r.text, nil
	}
}

// looksLikeHeader also accepts a file that ends within its header.
func looksLikeHeader(text []byte) bool {
	begin := []byte(`{"kind":"` + kindArchive + `"`)
	n := min(len(text), len(begin))
	return bytes.Equal(text[:n], begin[:n])
}

func (r *reader) take(text []byte) (*page, error) {
	var l line
	err := json.Unmarshal(text, &l)
	if r.header == nil {
		return nil, r.begin(&l, err)
	}
	r.seeks = r.seeks && (err != nil || l.Kind != kindHead && l.Kind != kindLeftOut && l.Kind != kindTotal)
	switch {
	case r.seeks:
		return nil, nil
	case err != nil:
		return nil, r.fault(ErrDamaged, "it is not the JSON of an archive: %v", err)
	}
	switch l.Kind {
	case kindHead, kindLeftOut:
		return nil, r.takeHead(&l, text)
	case kindEvent:
		return nil, r.takeEvent(&l, text)
	case kindSum, kindEnd:
		return r.endPage(&l, text)
	case kindTotal:
		return nil, r.takeTotal(&l)
	default:
		return nil, r.fault(ErrDamaged, "its kind is %q, which this version does not know", l.Kind)
	}
}

func (r *reader) begin(l *line, err error) error {
	switch {
	case err != nil:
		return r.fault(ErrNotArchive, "its first line is not the JSON of an archive: %v", err)
	case l.Kind != kindArchive || l.Format != formatName:
		return r.fault(ErrNotArchive, "its first line does not have the format %q", formatName)
	case l.Version != formatVersion:
		return r.fault(ErrNotArchive, "its format version is %d, this version reads %d: use a later version of this package", l.Version, formatVersion)
	}
	r.header = l
	r.done = Position{Offset: r.offset, Table: l.Table, Only: l.selection()}
	return nil
}

func (r *reader) takeHead(l *line, text []byte) error {
	switch {
	case r.total:
		return r.fault(ErrDamaged, "it comes after the total line")
	case r.open:
		return r.fault(ErrDamaged, "the previous aggregate has no end line")
	}
	var head journal.Head // of an aggregate that was left out; no event fits it
	switch {
	case l.Kind == kindHead:
		var err error
		if head, err = l.head(); err != nil {
			return r.fault(ErrDamaged, "not a head: %v", err)
		}
	case l.Reason == "":
		return r.fault(ErrDamaged, "it has no reason why an aggregate was left out")
	case l.Aggregate != nil:
		head.Aggregate = aggregate.ID(*l.Aggregate)
	}
	r.open, r.page = true, page{head: head, first: true}
	if l.Kind == kindLeftOut {
		r.page.leftOut = l.Reason
	}
	r.due, r.events, r.size, r.start = first(head), 0, 0, r.offset-int64(len(text))
	r.sum = sha256.New()
	r.sum.Write(text)
	return nil
}

func (r *reader) takeEvent(l *line, text []byte) error {
	if !r.open {
		return r.fault(ErrDamaged, "an event without a head before it")
	}
	head := &r.page.head
	record := l.record(head.Aggregate)
	if r.unit > time.Millisecond {
		record.OccurredAt = record.OccurredAt.Truncate(r.unit)
	}
	r.size += record.Size()
	switch {
	case l.Number != r.due:
		return r.fault(ErrDamaged, "event %d is in the place of event %d", l.Number, r.due)
	case l.Number > head.Version:
		return r.fault(ErrDamaged, "event %d is beyond the head's version %d", l.Number, head.Version)
	case len(r.page.records) == maxPageEvents || r.size > maxPageBytes+2*storage.MaxItemBytes:
		return r.fault(ErrDamaged, "more than %d events or %d bytes of them without a sum", maxPageEvents, maxPageBytes)
	}
	r.page.records = append(r.page.records, record)
	r.due++
	r.events++
	r.sum.Write(text)
	return nil
}

func (r *reader) endPage(l *line, text []byte) (*page, error) {
	if !r.open {
		return nil, r.fault(ErrDamaged, "a sum without a head before it")
	}
	last := l.Kind == kindEnd
	switch {
	case l.Events != r.events:
		return nil, r.fault(ErrDamaged, "it counts %d events, but there are %d", l.Events, r.events)
	case r.page.leftOut != "" && !last:
		return nil, r.fault(ErrDamaged, "a sum of an aggregate that was left out")
	case l.Digest != digest(r.sum):
		return nil, r.fault(ErrDamaged, "its digest differs from the digest of the lines since the head")
	case last && r.due != r.page.head.Version+1:
		return nil, r.fault(ErrDamaged, "the aggregate ends before event %d, but its head is at version %d", r.due, r.page.head.Version)
	}
	r.sum.Write(text)
	p := r.page
	p.last, p.bytes = last, r.offset-r.start
	r.page, r.size, r.start, r.open = page{head: p.head}, 0, r.offset, !last
	switch {
	case p.leftOut != "":
		// An export cannot always continue after an aggregate that it could not read, so it reads
		// that aggregate again.
		r.leftOut++
	case last:
		r.done.Aggregates++
		r.done.Events += r.events
		r.done.LeftOut = r.leftOut
		r.done.After, r.done.Offset = p.head.Aggregate, r.offset
	}
	return &p, nil
}

func (r *reader) takeTotal(l *line) error {
	switch {
	case r.total:
		return r.fault(ErrDamaged, "a second total line")
	case r.open:
		return r.fault(ErrDamaged, "the previous aggregate has no end line")
	}
	r.total = true
	// After a fault the counts cannot agree, so a difference shows nothing new.
	if !r.faulty && (l.Aggregates != r.done.Aggregates || l.Events != r.done.Events || l.LeftOut != r.leftOut) {
		return r.fault(ErrDamaged, "it counts %d aggregates with %d events, and %d left out, but there are %d with %d, and %d",
			l.Aggregates, l.Events, l.LeftOut, r.done.Aggregates, r.done.Events, r.leftOut)
	}
	r.done.Complete, r.done.Offset, r.done.LeftOut = true, r.offset, r.leftOut
	return nil
}
