package engine

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// row is an item, or what an index keeps of one, at its position. It is never changed.
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

// replace puts an item in the place of the one at a position, or deletes that one if the item is
// nil. It keeps the indexes, and charges table and indexes: the larger of old and new, times factor
// for the table.
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

// rowChange is a change of an item, with what it costs.
type rowChange struct {
	old, next *row
	units     float64 // of the table, outside a transaction
	entries   []entryChange
}

// entryChange is what becomes of an item's entry in an index.
type entryChange struct {
	ix        *index
	old, next *row
	units     float64
}

// change returns what it is to put an item in the place of the one at a position, or to delete that
// one if the item is nil.
func (t *table) change(p position, item value.Item) rowChange {
	c := rowChange{old: t.at(p)}
	if item != nil {
		c.next = &row{position: p, item: item, size: value.ItemSize(item)}
	}
	c.units = writeUnits(int(max(sizeOf(c.old), sizeOf(c.next))))
	for _, ix := range t.indexes {
		e := entryChange{ix: ix, old: ix.entry(t, c.old), next: ix.entry(t, c.next)}
		// An entry that is equal and yet another row is left out: a later change is compared with
		// the newest.
		if e.units = moveUnits(e.old, e.next); e.units > 0 {
			c.entries = append(c.entries, e)
		}
	}
	return c
}

// carry brings a change to an index, at once or with delay.
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
