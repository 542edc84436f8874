package engine

import (
	"slices"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// hasLocalIndex tells whether items with one partition key make an item collection.
func (t *table) hasLocalIndex() bool {
	return slices.ContainsFunc(t.indexes, func(ix *index) bool { return !ix.global })
}

// at gives the row at a position, nil if there is none.
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

// replace puts an item in the place of the one at a position, or deletes that one if the item is nil. It keeps
// the indexes, and charges table and indexes: the larger of old and new, times factor for the table.
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
			// The entry can be equal and yet another row: a later change is compared with the newest.
			continue
		}
		c.write(t, ix, units)
		db.carry(t, ix, change{of: p, old: before, next: after})
	}
	if t.expiry != nil {
		t.expiry.leave(old)
		if next != nil {
			t.expiry.enter(next)
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
	if delay <= 0 && (ix.pending == nil || len(ix.pending.changes) == 0) {
		ix.move(c.old, c.next)
		return
	}
	if ix.pending == nil {
		ix.pending = &pending{last: map[position]time.Time{}}
	}
	c.due = db.config.Now().Add(delay)
	ix.pending.delay(c)
}

// lock locks a table for writing, after what was due by now has happened.
func (db *Database) lock(t *table) error {
	t.mu.Lock()
	if t.dropped {
		t.mu.Unlock()
		return notFound("Requested resource not found")
	}
	db.settle(t)
	return nil
}

// rlock locks a table for reading, after what was due by now has happened.
func (db *Database) rlock(t *table) error {
	t.mu.RLock()
	if !t.dropped && db.unsettled(t) {
		t.mu.RUnlock()
		t.mu.Lock()
		db.settle(t)
		t.mu.Unlock()
		t.mu.RLock()
	}
	if t.dropped {
		t.mu.RUnlock()
		return notFound("Requested resource not found")
	}
	return nil
}

func (db *Database) unsettled(t *table) bool {
	if t.expiry.due(db.expiredBefore(t)) {
		return true
	}
	for _, ix := range t.indexes {
		if ix.pending != nil && ix.pending.due(db.config.Now()) {
			return true
		}
	}
	return false
}

func (db *Database) settle(t *table) {
	if t.expiry != nil {
		db.expire(t, db.expiredBefore(t))
	}
	for _, ix := range t.indexes {
		if ix.pending != nil {
			ix.arrive(db.config.Now())
		}
	}
}

func (db *Database) expiredBefore(t *table) time.Time {
	if t.expiry == nil {
		return time.Time{}
	}
	return db.config.Now().Add(-db.config.ExpiryDelay())
}
