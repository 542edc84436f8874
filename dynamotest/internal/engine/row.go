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
	old := t.at(p)
	var next *row
	if item != nil {
		next = &row{position: p, item: item, size: value.ItemSize(item)}
		t.rows.Set(next)
	} else if old != nil {
		t.rows.Delete(old)
	}
	t.size += sizeOf(next) - sizeOf(old)
	c.Written++
	c.write(t, nil, factor*writeUnits(int(max(sizeOf(old), sizeOf(next)))))
	for _, ix := range t.indexes {
		before, after := ix.entry(t, old), ix.entry(t, next)
		units := moveUnits(before, after)
		if units == 0 {
			// The entry can be equal and yet another row: a later change is compared with the
			// newest.
			continue
		}
		c.write(t, ix, units)
		db.carry(t, ix, change{of: p, old: before, next: after})
	}
	if t.expiry != nil {
		t.expiry.leave(old)
		if next != nil {
			t.expiry.enter(next, db.config.Now())
		}
	}
}

// carry brings a change to an index, at once or with delay.
func (db *Database) carry(t *table, ix *index, c change) {
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
