package engine

import (
	"slices"
	"strings"
	"time"
)

// lock locks a table for writing, after applying all changes that are due.
func (db *Database) lock(t *table) error {
	t.mu.Lock()
	if t.dropped {
		t.mu.Unlock()
		return notFound("Requested resource not found")
	}
	db.applyDue(t)
	return nil
}

// rlock locks a table for reading, after applying all changes that are due.
func (db *Database) rlock(t *table) error {
	t.mu.RLock()
	if !t.dropped && db.hasDue(t) {
		t.mu.RUnlock()
		t.mu.Lock()
		db.applyDue(t)
		t.mu.Unlock()
		t.mu.RLock()
	}
	if t.dropped {
		t.mu.RUnlock()
		return notFound("Requested resource not found")
	}
	return nil
}

func (db *Database) hasDue(t *table) bool {
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

func (db *Database) applyDue(t *table) {
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

// lockAll locks each of the tables once, in the order of their names, which prevents deadlocks.
func (db *Database) lockAll(tables []*table, lock func(*table) error, unlock func(*table)) (unlockAll func(), err error) {
	slices.SortFunc(tables, func(a, b *table) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id) // one of them is deleted
	})
	tables = slices.Compact(tables)
	for i, t := range tables {
		if err := lock(t); err != nil {
			for _, t := range tables[:i] {
				unlock(t)
			}
			return nil, err
		}
	}
	return func() {
		for _, t := range tables {
			unlock(t)
		}
	}, nil
}

func (t *table) unlock()  { t.mu.Unlock() }
func (t *table) runlock() { t.mu.RUnlock() }
