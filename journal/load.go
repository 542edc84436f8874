package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

func (j *engine) Load(
	ctx context.Context, id aggregate.ID, begin func(Head, error) uint64, apply func(*Record) error,
) (storage.Loaded, error) {
	if err := id.Validate(); err != nil {
		return storage.Loaded{}, err
	}
	var own error // of begin or apply, which is returned as it is
	loaded, err := j.layout.load(ctx, id, func(head Head) (uint64, error) {
		var snapshotErr error
		if head.Snapshot, snapshotErr, own = j.snapshotToLoad(ctx, head); own != nil {
			return 0, own
		}
		return begin(head, snapshotErr), nil
	}, func(stored *Record) error {
		var r *Record
		if r, own = j.Decode(ctx, stored); own != nil {
			return own
		}
		own = apply(r)
		return own
	})
	switch {
	case own != nil && errors.Is(err, own):
		return storage.Loaded{}, own
	case err != nil:
		return loaded, fmt.Errorf("read %s: %w", id, err)
	}
	return loaded, nil
}

// snapshotToLoad decodes the snapshot of a head. If the snapshot cannot be decoded, it leaves the
// snapshot out and returns the reason in left.
func (j *engine) snapshotToLoad(ctx context.Context, head Head) (s *Snapshot, left, err error) {
	s, err = j.decodeSnapshot(ctx, head.Aggregate, head.Snapshot)
	if err == nil {
		return s, nil, nil
	}
	if ctx.Err() != nil || errors.Is(err, ErrKeyDestroyed) || !errors.As(err, new(*EncodingError)) {
		return nil, nil, err
	}
	return nil, err, nil
}
