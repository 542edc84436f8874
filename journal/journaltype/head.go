package journaltype

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Head describes an aggregate without its events. In the layout [Classic] it is the one row of the
// aggregate that every commit updates.
type Head struct {
	Aggregate aggregate.ID
	// Version is the number of the last event.
	Version uint64
	// Snapshot is nil if there is none.
	Snapshot *Snapshot
	// Redundant lists the numbers of the redundant snapshots, in ascending order. Repositories
	// store these for loads of earlier versions. In the layout Packed, Journal.Heads leaves them
	// out.
	Redundant []uint64
	// TruncatedBefore, if not 0, means that events with lower numbers were removed, or soon will
	// be; see Journal.Truncate.
	TruncatedBefore uint64
	// DeletedAt is not zero if the head is a tombstone; see Journal.Delete.
	DeletedAt time.Time
}

// HeadsQuery selects the heads that Journal.Heads yields.
type HeadsQuery struct {
	// AggregateType selects one type; only its partitions are read. Default: empty, which selects
	// all types.
	AggregateType string
	// After is the aggregate of the last head that was yielded, to continue after it. Default:
	// zero, which begins with the first. If AggregateType is set, After must have that type.
	After aggregate.ID
	// Limit is the number of heads after which the sequence ends. Heads that are passed to Corrupt
	// do not count. To continue, set After to the last one. Default: 0, which is no limit.
	Limit int
	// Corrupt, if set, is called for heads that cannot be decoded, and for heads that are
	// Misplaced, which means that readers expect them in another place. If Corrupt is nil, a head
	// that cannot be decoded ends the sequence, and a misplaced one is yielded.
	Corrupt func(*CorruptItemError)
}
