package engine

import (
	"slices"
	"time"
)

// Staleness is the age of a read. The read sees one of the states that a partition had between Most
// and Least ago.
type Staleness struct {
	Least, Most time.Duration
	// Draw chooses the state: it returns a number that is at least 0 and below 1. Touch is the
	// index of the item in [Database.Touches], and 0 for a Query or Scan. Draw returns false if the
	// read of the item is not stale.
	Draw func(touch int, partition string) (choice float64, stale bool)
}

// maxHistory is the largest number of changes that the history of a table holds. If more changes
// are made within the longest age, reads see less of the past.
const maxHistory = 1 << 14

// history holds the latest changes of a table, so that a read can see an earlier state.
type history struct {
	changes    []pastChange            // the oldest first
	partitions map[string][]pastChange // the same by partition
}

// pastChange is a change of an item.
type pastChange struct {
	at  time.Time
	of  position
	old *row // nil if there was no item
}

// Remember makes the database keep the changes of its tables for some time, so that reads can see
// what was there before them. 0 drops them.
func (db *Database) Remember(d time.Duration) {
	db.remembers.Store(int64(d))
	if d > 0 {
		return
	}
	db.mu.RLock()
	tables := make([]*table, 0, len(db.tables))
	for _, t := range db.tables {
		tables = append(tables, t)
	}
	db.mu.RUnlock()
	for _, t := range tables {
		t.mu.Lock()
		t.history = nil
		t.mu.Unlock()
	}
}

// note adds a change to the history of a table if the database keeps one.
func (db *Database) note(t *table, of position, old *row) {
	keep := time.Duration(db.remembers.Load())
	if keep == 0 {
		return
	}
	if t.history == nil {
		t.history = &history{partitions: map[string][]pastChange{}}
	}
	now := db.config.Now()
	t.history.add(pastChange{at: now, of: of, old: old})
	t.history.drop(now.Add(-keep))
}

func (h *history) add(c pastChange) {
	h.changes = append(h.changes, c)
	h.partitions[c.of.partition] = append(h.partitions[c.of.partition], c)
}

// drop removes the changes that every read sees, which were made at a time or before it.
func (h *history) drop(before time.Time) {
	for len(h.changes) > maxHistory || len(h.changes) > 0 && !h.changes[0].at.After(before) {
		partition := h.changes[0].of.partition
		if h.partitions[partition] = shift(h.partitions[partition]); len(h.partitions[partition]) == 0 {
			delete(h.partitions, partition)
		}
		h.changes = shift(h.changes)
	}
}

// shift removes the first change, and releases its row.
func shift(changes []pastChange) []pastChange {
	changes[0] = pastChange{}
	return changes[1:]
}

func (f *Interference) isStale() bool { return f != nil && f.Stale != nil }

// unseen returns the changes of a partition that a read does not see, the oldest first. They are
// the latest ones.
func (db *Database) unseen(t *table, f *Interference, touch int, partition string) (changes []pastChange) {
	if !f.isStale() || t.history == nil {
		return nil
	}
	all, now := t.history.partitions[partition], db.config.Now()
	for _, s := range f.Stale {
		choice, stale := s.Draw(touch, partition)
		if !stale {
			continue
		}
		fewest, most := madeBy(all, now.Add(-s.Most)), madeBy(all, now.Add(-s.Least))
		seen := fewest + int(choice*float64(most-fewest+1))
		if len(all)-seen > len(changes) {
			changes = all[seen:]
		}
	}
	return changes
}

// madeBy returns how many of the changes were made by a time.
func madeBy(changes []pastChange, at time.Time) int {
	n := len(changes)
	for n > 0 && changes[n-1].at.After(at) {
		n--
	}
	return n
}

// seen returns the row that a read of an item sees, nil if there is none.
func (db *Database) seen(t *table, at position, f *Interference, touch int) *row {
	unseen := db.unseen(t, f, touch, at.partition)
	if i := slices.IndexFunc(unseen, func(c pastChange) bool { return c.of == at }); i >= 0 {
		return unseen[i].old
	}
	return t.at(at)
}

// seenRows returns the rows that a page sees in some partitions.
func (db *Database) seenRows(t *table, f *Interference, partitions ...string) *rows {
	seen := t.rows
	for _, partition := range partitions {
		for _, c := range slices.Backward(db.unseen(t, f, 0, partition)) {
			if seen == t.rows {
				seen = t.rows.Copy()
			}
			if c.old != nil {
				seen.Set(c.old)
			} else {
				seen.Delete(&row{position: c.of})
			}
		}
	}
	return seen
}

// changed returns the partitions with changes in the history.
func (t *table) changed() []string {
	if t.history == nil {
		return nil
	}
	partitions := make([]string, 0, len(t.history.partitions))
	for partition := range t.history.partitions {
		partitions = append(partitions, partition)
	}
	return partitions
}

// lockFor locks a table for a Query or Scan. A stale one copies the rows, which needs the lock for
// writing.
func (db *Database) lockFor(t *table, f *Interference) (unlock func(), err error) {
	if f.isStale() {
		return t.unlock, db.lock(t)
	}
	return t.runlock, db.rlock(t)
}
