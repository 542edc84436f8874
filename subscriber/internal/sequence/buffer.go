package sequence

import (
	"cmp"
	"slices"

	"github.com/millrace-dev/millrace/journal/journaltype"
)

// buffer holds events of one aggregate in order, before they are delivered. Events that are missing
// before or between them are read from the journal when they are due. Callers pass the budget that
// the events are counted in.
type buffer struct {
	records []*journaltype.Record
	bytes   int // what it has taken from the budget
	// lent is the first event while a worker has it. It does not count in the budget, because a
	// handler may keep it forever.
	lent    *journaltype.Record
	trimmed bool // no events are added until it is empty
}

// SizeOf returns what an event counts for in the budget: its size, and that of a stream, because
// most streams that wait hold one event.
func SizeOf(r *journaltype.Record) int { return r.Size() + streamBytes }

// add adds an event from the tail, if there is room for it.
func (b *buffer) add(r *journaltype.Record, of *Budget) {
	if b.trimmed {
		return
	}
	// Most events come in order. But the tail has the events of one commit in any order, and a page
	// of it may end among them.
	at, found := b.find(r.Number)
	if found {
		return
	}
	size := SizeOf(r)
	if len(b.records) == 0 { // each stream may hold one event
		of.take(size)
	} else if !of.tryTake(size) {
		b.trimmed = true
		return
	}
	b.records = slices.Insert(b.records, at, r)
	b.bytes += size
}

// find returns the index of an event, and whether the buffer holds it.
func (b *buffer) find(number uint64) (at int, found bool) {
	return slices.BinarySearchFunc(b.records, number, func(r *journaltype.Record, number uint64) int { return cmp.Compare(r.Number, number) })
}

// hasAll reports whether the buffer holds the events first to last.
func (b *buffer) hasAll(first, last uint64) bool {
	at, _ := b.find(first)
	n := last - first + 1
	return uint64(len(b.records)-at) >= n && b.records[at].Number == first && b.records[at+int(n)-1].Number == last //nolint:gosec // n is not above the length
}

// after returns the events that follow an event without a gap, at most a number of them.
func (b *buffer) after(number uint64, most int) (records []*journaltype.Record) {
	at, _ := b.find(number + 1)
	for _, r := range b.records[at:] {
		if len(records) == most || r.Number != number+1 {
			break
		}
		records = append(records, r)
		number++
	}
	return records
}

// fill inserts events that were read from the journal before the other events.
func (b *buffer) fill(records []*journaltype.Record, of *Budget) {
	b.dropTo(records[len(records)-1].Number, of) // the tail may have added some of them meanwhile
	for _, r := range records {
		size := SizeOf(r)
		b.bytes += size
		of.take(size)
	}
	b.records = append(records, b.records...)
}

// dropTo drops the events up to a number, and returns how many it has dropped.
func (b *buffer) dropTo(number uint64, of *Budget) (dropped uint64) {
	for len(b.records) > 0 && b.records[0].Number <= number {
		size := SizeOf(b.records[0])
		if b.records[0] == b.lent {
			b.lent, size = nil, 0
		}
		b.records[0] = nil
		b.records = b.records[1:]
		if len(b.records) == 0 {
			b.records, b.trimmed = nil, false
		}
		b.bytes -= size
		of.Release(size)
		dropped++
	}
	return dropped
}

// lend records that a worker has the first event.
func (b *buffer) lend(of *Budget) {
	if first := b.records[0]; first != b.lent {
		b.lent = first
		b.bytes -= SizeOf(first)
		of.Release(SizeOf(first))
	}
}

// trim removes events from the end until the rest fits a size. It keeps the first event.
func (b *buffer) trim(size int, of *Budget) {
	freed, keep := 0, len(b.records)
	for keep > 1 && b.bytes-freed > size {
		keep--
		freed += SizeOf(b.records[keep])
	}
	if freed == 0 {
		return
	}
	clear(b.records[keep:])
	b.records, b.trimmed = b.records[:keep], true
	b.bytes -= freed
	of.Release(freed)
}

// drop drops all events. They are read from the journal when they are due.
func (b *buffer) drop(of *Budget) {
	of.Release(b.bytes)
	*b = buffer{}
}
