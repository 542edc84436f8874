package engine

import (
	"time"

	"github.com/tidwall/btree"
)

// pending are changes on their way to a global index.
type pending struct {
	changes *btree.BTreeG[indexChange] // in the order in which they arrive
	made    uint64
	last    map[position]last // by item
}

type indexChange struct {
	due       time.Time
	number    uint64   // of changes, which decides where two are due at once
	of        position // of the item in the table
	old, next *row
}

// last is what is known of the changes of one item.
type last struct {
	due   time.Time // of the last one
	count int       // of those that have not arrived
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

// delay puts a change on its way. The changes of one item never overtake each other.
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

// arrive makes the changes that are due.
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
