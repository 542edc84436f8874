package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Head is what there is to know of an aggregate besides its events. In the layout [Classic] it is
// the one row of the aggregate that every commit updates.
type Head struct {
	Aggregate aggregate.ID
	// Version equals the sequence number of the last event.
	Version uint64
	// Snapshot is nil when there is no state.
	Snapshot *Snapshot
	// Redundant are the numbers of the redundant snapshots, in ascending order. Repositories store
	// them for loads of earlier versions. In the layout Packed, [Journal.Heads] leaves them out.
	Redundant []uint64
	// TruncatedBefore, if not 0, says that events with lower numbers are removed, or soon will be;
	// see [Journal.Truncate].
	TruncatedBefore uint64
	// DeletedAt is not zero when the head is a tombstone; see [Journal.Delete].
	DeletedAt time.Time
}

// Head returns the head of an aggregate with its latest snapshot, strongly consistent. It also
// returns the head of a deleted aggregate. [Journal.Version] returns the version alone, and needs
// no encryption key.
//
// In the layout [Classic] it takes one round trip, and one read unit for each 4 KB of state.
// [Packed] has no row for the head: it takes three round trips, for the last commit, the snapshot,
// and the commit that the snapshot ends with, one unit for each 4 KB of each.
//
// Errors: [ErrNotFound], [*CorruptItemError], [*EncodingError], [ErrKeyDestroyed],
// [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError.
func (j *Journal) Head(ctx context.Context, id aggregate.ID) (Head, error) {
	return j.engine.Head(ctx, id)
}

func (j *engine) Head(ctx context.Context, id aggregate.ID) (Head, error) {
	if err := id.Validate(); err != nil {
		return Head{}, err
	}
	head, err := j.layout.head(ctx, id)
	if err != nil {
		return Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	if head.Snapshot, err = j.decodeSnapshot(ctx, id, head.Snapshot); err != nil {
		return Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	return head, nil
}

// setSnapshot leaves out one that is ahead of the head, which was put back: it is of a history that
// is no more. The next commit removes it; see adaptToHead.
func (h *Head) setSnapshot(s *Snapshot) {
	if s != nil && s.Number <= h.Version {
		h.Snapshot = s
	}
}

// Version returns how many events an aggregate has, strongly consistent: one round trip with a
// small reply. DynamoDB bills the whole item: one read unit for each 4 KB of the state in the
// layout [Classic], and of the last commit in the layout [Packed].
//
// Errors: [*DeletedError] and those of Head.
func (j *Journal) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	return j.engine.Version(ctx, id)
}

func (j *engine) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	version, err := j.layout.version(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read version of %s: %w", id, err)
	}
	return version, nil
}

func (h Head) deleted() error {
	return &DeletedError{ID: h.Aggregate, Version: h.Version, At: h.DeletedAt}
}
