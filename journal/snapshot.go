package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Snapshot is the encoded state of an aggregate after one of its events.
type Snapshot struct {
	// Number is the number of the last event in the state. It is 0 if another program replaced the
	// payload. Only the payload can then contain the number.
	Number  uint64
	Payload []byte // the state, decoded by the encodings of the journal
	// Schema is the version of the state's form, numbered by the writer. It is valid only if Number
	// is not 0.
	Schema uint64
	// Encoding names the applied encodings; see [Journal.Raw]. It is empty on a decoded snapshot.
	Encoding string
}

// validateRedundancy refuses settings that would overwrite the head or delete the new snapshot.
func validateRedundancy(r *storage.Redundancy, c *commit) error {
	switch {
	case r.Keep < 1:
		return &ConfigError{Field: "Redundancy.Keep", Reason: fmt.Sprintf("is %d: keep 1 or more, or set no Redundancy", r.Keep)}
	case r.TTL < 0:
		return &ConfigError{Field: "Redundancy.TTL", Reason: "is negative: leave it 0 to remove snapshots with RemoveSnapshots"}
	case c.Snapshot != nil && len(r.Listed) > 0 && r.Listed[len(r.Listed)-1] >= c.Snapshot.Number:
		return &ConfigError{Field: "Redundancy.Listed", Reason: fmt.Sprintf(
			"ends with %d: list numbers below the number of the snapshot, %d, in ascending order", r.Listed[len(r.Listed)-1], c.Snapshot.Number)}
	}
	return nil
}

func (j *engine) SnapshotBefore(ctx context.Context, head Head, number uint64) (*Snapshot, error) {
	s, err := j.layout.snapshotBefore(ctx, head, number)
	if err == nil {
		s, err = j.decodeSnapshot(ctx, head.Aggregate, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot of %s at event %d: %w", head.Aggregate, number, err)
	}
	return s, nil
}

func (j *engine) RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error {
	if err := id.Validate(); err != nil {
		return err
	}
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	if len(numbers) > 0 && numbers[0] == 0 {
		return fmt.Errorf("remove snapshots of %s: %w", id, errors.New("0 is the head, which cannot be removed"))
	}
	if err := j.layout.removeSnapshots(ctx, id, numbers); err != nil {
		return fmt.Errorf("remove snapshots of %s: %w", id, err)
	}
	return nil
}
