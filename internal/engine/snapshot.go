package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// validateRedundancy refuses settings that would overwrite the head or delete the new snapshot.
func validateRedundancy(r *storage.Redundancy, c *storage.Commit) error {
	switch {
	case r.Keep < 1:
		return &journaltype.ConfigError{Field: "Redundancy.Keep", Reason: fmt.Sprintf("is %d: keep 1 or more, or set no Redundancy", r.Keep)}
	case r.TTL < 0:
		return &journaltype.ConfigError{Field: "Redundancy.TTL", Reason: "is negative: leave it 0 to remove snapshots with RemoveSnapshots"}
	case c.Snapshot != nil && len(r.Listed) > 0 && r.Listed[len(r.Listed)-1] >= c.Snapshot.Number:
		return &journaltype.ConfigError{Field: "Redundancy.Listed", Reason: fmt.Sprintf(
			"ends with %d: list numbers below the number of the snapshot, %d, in ascending order", r.Listed[len(r.Listed)-1], c.Snapshot.Number)}
	}
	return nil
}

// SnapshotBefore returns the latest redundant snapshot of an aggregate that includes at most
// the event with that number. It returns nil if there is none. The head lists the snapshots. If
// no listed snapshot can be used, Packed looks for the snapshot that stands for truncated
// events. If the head lists none, Classic queries the aggregate index of the snapshot table,
// because other programs keep no list.
//
// A snapshot of another program has Number 0, as in a Head. Only its payload may contain the
// number.
//
// An expired row counts as absent. The result only saves reading events.
//
// Errors: *EncodingError, ErrKeyDestroyed, *CorruptItemError, ErrTableMissing, ErrThrottled,
// ErrAccess, and the error of ctx.
func (j *Engine) SnapshotBefore(ctx context.Context, head journaltype.Head, number uint64) (*journaltype.Snapshot, error) {
	s, err := j.Layout.SnapshotBefore(ctx, head, number)
	if err == nil {
		s, err = j.decodeSnapshot(ctx, head.Aggregate, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot of %s at event %d: %w", head.Aggregate, number, err)
	}
	return s, nil
}

// RemoveSnapshots deletes redundant snapshots of an aggregate, those in Receipt.Surplus, 25
// with one request. It repeats deletions that DynamoDB left unprocessed until
// Config.RetryBudget ends. It may be called again. After an error, the next commit with a
// storage.Redundancy deletes the rest.
//
// Errors: ErrThrottled, ErrTableMissing, ErrAccess, *aggregate.InvalidIDError, the error of
// ctx, and an error for number 0, which is not a redundant snapshot.
func (j *Engine) RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error {
	if err := id.Validate(); err != nil {
		return err
	}
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	if len(numbers) > 0 && numbers[0] == 0 {
		return fmt.Errorf("remove snapshots of %s: %w", id, errors.New("0 is the head, which cannot be removed"))
	}
	if err := j.Layout.RemoveSnapshots(ctx, id, numbers); err != nil {
		return fmt.Errorf("remove snapshots of %s: %w", id, err)
	}
	return nil
}
