package engine

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// row is an item, or its entry in an index, at its position. It never changes.
type row struct {
	position
	item value.Item
	size int
}

type rows = btree.BTreeG[*row]

func newRows() *rows {
	return btree.NewBTreeGOptions(func(a, b *row) bool { return a.compare(b.position) < 0 }, btree.Options{NoLocks: true})
}

// at returns the row at a position, nil if there is none.
func (t *table) at(p position) *row {
	r, _ := t.rows.Get(&row{position: p})
	return r
}

func (r *row) content() value.Item {
	if r == nil {
		return nil
	}
	return r.item
}

// replace stores an item at a position in place of the old one, or deletes the old one if item is
// nil. It updates the indexes, and charges table and indexes for the larger of the old and the new
// item. The charge of the table is multiplied by factor.
func (db *Database) replace(c *Cost, t *table, p position, item value.Item, factor float64) {
	change := t.change(p, item)
	old, next := change.old, change.next
	switch {
	case next != nil:
		t.rows.Set(next)
	case old != nil:
		t.rows.Delete(old)
	}
	t.size += sizeOf(next) - sizeOf(old)
	db.note(t, p, old)
	c.Written++
	c.write(t, nil, factor*change.units)
	for _, e := range change.entries {
		c.write(t, e.ix, e.units)
		db.carry(t, e.ix, indexChange{of: p, old: e.old, next: e.next})
	}
	if t.expiry != nil {
		t.expiry.leave(old)
		if next != nil {
			t.expiry.enter(next, db.config.Now())
		}
	}
}

// rowChange is a change of an item, with its units.
type rowChange struct {
	old, next *row
	units     float64 // of the table, outside of a transaction
	entries   []entryChange
}

// entryChange is the change of an item's entry in an index.
type entryChange struct {
	ix        *index
	old, next *row
	units     float64
}

// change returns the change that stores an item at a position, or deletes the old one if item is
// nil.
func (t *table) change(p position, item value.Item) rowChange {
	c := rowChange{old: t.at(p)}
	if item != nil {
		c.next = &row{position: p, item: item, size: value.ItemSize(item)}
	}
	c.units = writeUnits(int(max(sizeOf(c.old), sizeOf(c.next))))
	for _, ix := range t.indexes {
		e := entryChange{ix: ix, old: ix.entry(t, c.old), next: ix.entry(t, c.next)}
		// An entry that is equal but another row is left out, because a later change is compared
		// with the newest.
		if e.units = moveUnits(e.old, e.next); e.units > 0 {
			c.entries = append(c.entries, e)
		}
	}
	return c
}

// carry applies a change to an index, immediately or with a delay.
func (db *Database) carry(t *table, ix *index, c indexChange) {
	var delay time.Duration
	if ix.global && db.config.IndexDelay != nil {
		delay = db.config.IndexDelay(t.name, ix.name, func() value.Item {
			if c.next != nil {
				return t.key.keyOf(c.next.item)
			}
			return t.key.keyOf(c.old.item)
		})
	}
	if delay <= 0 && (ix.pending == nil || ix.pending.last[c.of].count == 0) {
		ix.move(c.old, c.next)
		return
	}
	if ix.pending == nil {
		ix.pending = newPending()
	}
	c.due = db.config.Now().Add(delay)
	ix.pending.delay(c)
}
