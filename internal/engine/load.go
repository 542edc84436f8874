package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Load reads an aggregate after its last event, strongly consistent. It calls begin with the
// head as far as it is known, and then apply with each later event, decoded, in order and
// without a gap. After an error, the state that begin and apply have made must not be used.
//
// The head has its decoded snapshot. If the snapshot cannot be decoded, the head has none, and
// snapshotErr is an *EncodingError with the reason. It is never an ErrKeyDestroyed. In Classic
// the version of the head is the version of the aggregate. In Packed it only means that the
// aggregate has at least that many events.
//
// Begin returns the number of the last event in the state from which it starts, and 0 for no
// state. Load calls begin again if it must start again, for example because events were
// truncated between its reads. Begin must then reset the state.
//
// If the aggregate has no events, Load returns ErrNotFound, and the aggregate's commands
// without events.
//
// Errors: ErrNotFound, *DeletedError for a tombstone, an error of apply unchanged, and the
// errors of Journal.Head and Journal.Events.
func (j *Engine) Load(
	ctx context.Context, id aggregate.ID, begin func(journaltype.Head, error) uint64, apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	if err := id.Validate(); err != nil {
		return storage.Loaded{}, err
	}
	var own error // of begin or apply, which is returned as it is
	loaded, err := j.Layout.Load(ctx, id, func(head journaltype.Head) (uint64, error) {
		var snapshotErr error
		if head.Snapshot, snapshotErr, own = j.snapshotToLoad(ctx, head); own != nil {
			return 0, own
		}
		return begin(head, snapshotErr), nil
	}, func(stored *journaltype.Record) error {
		var r *journaltype.Record
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
func (j *Engine) snapshotToLoad(ctx context.Context, head journaltype.Head) (s *journaltype.Snapshot, left, err error) {
	s, err = j.decodeSnapshot(ctx, head.Aggregate, head.Snapshot)
	if err == nil {
		return s, nil, nil
	}
	if ctx.Err() != nil || errors.Is(err, journaltype.ErrKeyDestroyed) || !errors.As(err, new(*journaltype.EncodingError)) {
		return nil, nil, err
	}
	return nil, err, nil
}
