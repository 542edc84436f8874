package storage

// Restoration is what one transaction restores of one aggregate: events as they once were, and the
// head that fits them. An aggregate of many events is restored in steps, each with the head as it
// is after that step.
type Restoration[Head, Record any] struct {
	// Expected is the version that the head must have before, 0 if there must be none.
	Expected uint64
	// Head is how the aggregate's head is to be afterwards. Its Version is the number of the last
	// record. Its TruncatedBefore and DeletedAt count only where Expected is 0; a head that is
	// there keeps its own. Redundant never counts.
	Head Head
	// Records are the events from Expected+1 on, or those from Head.TruncatedBefore on where
	// Expected is 0, without a gap: up to [MaxEvents]. An aggregate of which only the head is left
	// has none.
	Records []*Record
}

// Inspection is what the tables hold of one aggregate, sound or not.
type Inspection[Head, Corrupt any] struct {
	// Head is what the journal's method Head returns, and nil where there is none that can be read.
	Head *Head
	// SnapshotNumber is the number that stands beside the latest state, also where it is beyond the
	// head and is therefore not used. 0 for a foreign writer's.
	SnapshotNumber uint64
	// Corrupt are the items that cannot be read: the head, or events.
	Corrupt []*Corrupt
}
