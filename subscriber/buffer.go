package subscriber

import (
	"cmp"
	"slices"

	"github.com/millrace-dev/millrace/journal"
)

// buffer holds events of one aggregate in order, ahead of their turn. What lacks before and between
// them is read from the journal when its turn comes. Whoever changes it says what budget the events
// are of.
type buffer struct {
	records []*journal.Record
	bytes   int
	trimmed bool // nothing is added until it is empty
}

// add takes an event that the tail showed, where there is room for it.
func (b *buffer) add(r *journal.Record, of *budget) {
	if b.trimmed {
		return
	}
	// Most come in order. But the tail has the events of one commit in any order, and a page of it
	// may end among them.
	at, found := b.find(r.Number)
	if found {
		return
	}
	size := r.Size()
	if len(b.records) == 0 { // there is room for one event of each
		of.take(size)
	} else if !of.tryTake(size) {
		b.trimmed = true
		return
	}
	b.records = slices.Insert(b.records, at, r)
	b.bytes += size
}

// find returns the place of an event, and whether it is there.
func (b *buffer) find(number uint64) (at int, found bool) {
	return slices.BinarySearchFunc(b.records, number, func(r *journal.Record, number uint64) int { return cmp.Compare(r.Number, number) })
}

// after returns the events that follow one without a gap, up to a number of them.
func (b *buffer) after(number uint64, most int) (records []*journal.Record) {
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

// fill puts events before the others that were read from the journal.
func (b *buffer) fill(records []*journal.Record, of *budget) {
	b.dropTo(records[len(records)-1].Number, of) // the tail was faster
	for _, r := range records {
		size := r.Size()
		b.bytes += size
		of.take(size)
	}
	b.records = append(records, b.records...)
}

// dropTo drops the events up to a number, and returns how many.
func (b *buffer) dropTo(number uint64, of *budget) (dropped uint64) {
	for len(b.records) > 0 && b.records[0].Number <= number {
		size := b.records[0].Size()
		b.records[0] = nil
		b.records = b.records[1:]
		if len(b.records) == 0 {
			b.records, b.trimmed = nil, false
		}
		b.bytes -= size
		of.release(size)
		dropped++
	}
	return dropped
}

// trim removes events from the end until the rest fits a size. It keeps the first event.
func (b *buffer) trim(size int, of *budget) {
	freed, keep := 0, len(b.records)
	for keep > 1 && b.bytes-freed > size {
		keep--
		freed += b.records[keep].Size()
	}
	if freed == 0 {
		return
	}
	clear(b.records[keep:])
	b.records, b.trimmed = b.records[:keep], true
	b.bytes -= freed
	of.release(freed)
}

// drop forgets all of it; it is read from the journal when its turn comes.
func (b *buffer) drop(of *budget) {
	of.release(b.bytes)
	*b = buffer{}
}
