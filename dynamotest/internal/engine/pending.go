package engine

import (
	"time"

	"github.com/tidwall/btree"
)

// pending holds the delayed changes of a global index.
type pending struct {
	changes *btree.BTreeG[indexChange] // in the order of arrival
	made    uint64
	last    map[position]last // by item
}

type indexChange struct {
	due time.Time
	// number is the number of the change, which orders changes that are due at the same time.
	number    uint64
	of        position // of the item in the table
	old, next *row
}

// last describes the delayed changes of one item.
type last struct {
	due   time.Time // when the last one is due
	count int       // of changes that have not arrived
}

func newPending() *pending {
	return &pending{
		changes: btree.NewBTreeGOptions(func(a, b indexChange) bool {
			if !a.due.Equal(b.due) {
				return a.due.Before(b.due)
			}
			return a.number < b.number
		}, btree.Options{NoLocks: true}),
		last: map[position]last{},
	}
}

// delay adds a delayed change. Changes of one item keep their order.
func (p *pending) delay(c indexChange) {
	l := p.last[c.of]
	if l.due.After(c.due) {
		c.due = l.due
	}
	p.last[c.of] = last{due: c.due, count: l.count + 1}
	p.made++
	c.number = p.made
	p.changes.Set(c)
}

func (p *pending) due(now time.Time) bool {
	if p == nil {
		return false
	}
	c, ok := p.changes.Min()
	return ok && !c.due.After(now)
}

// arrive applies the changes that are due.
func (ix *index) arrive(now time.Time) {
	p := ix.pending
	for p.due(now) {
		c, _ := p.changes.PopMin()
		ix.move(c.old, c.next)
		if l := p.last[c.of]; l.count > 1 {
			p.last[c.of] = last{due: l.due, count: l.count - 1}
		} else {
			delete(p.last, c.of)
		}
	}
}
