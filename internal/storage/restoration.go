package storage

import "github.com/millrace-dev/millrace/journal/journaltype"

// Restoration holds the changes with which one transaction restores an aggregate: original events,
// and a head that fits them. An aggregate with many events is restored in steps, each with the head
// after that step.
type Restoration struct {
	// Expected is the version that the head must have before, 0 if there must be no head.
	Expected uint64
	// Head is the head of the aggregate after the step. Its Version is the number of the last
	// record. Its TruncatedBefore and DeletedAt are used only if Expected is 0; otherwise the
	// stored head keeps its own. Redundant is not used.
	Head journaltype.Head
	// Records are the events from Expected+1 without a gap, up to [MaxEvents]. If Expected is 0,
	// they begin with Head.TruncatedBefore. There are none for an aggregate of which only the head
	// is left.
	Records []*journaltype.Record
}

// Inspection holds everything that the tables contain of one aggregate, even if it is corrupt.
type Inspection struct {
	// Head is the result of the journal's method Head, and nil if there is none that can be
	// decoded.
	Head *journaltype.Head
	// SnapshotNumber is the number stored with the latest snapshot, even if it is beyond the head
	// and therefore not used. It is 0 for a snapshot of another program.
	SnapshotNumber uint64
	// Corrupt lists the items that cannot be decoded: the head, or events.
	Corrupt []*journaltype.CorruptItemError
}
