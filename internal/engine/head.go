package engine

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Head implements Journal.Head.
func (j *Engine) Head(ctx context.Context, id aggregate.ID) (journaltype.Head, error) {
	if err := id.Validate(); err != nil {
		return journaltype.Head{}, err
	}
	head, err := j.Layout.Head(ctx, id)
	if err != nil {
		return journaltype.Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	if head.Snapshot, err = j.decodeSnapshot(ctx, id, head.Snapshot); err != nil {
		return journaltype.Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	return head, nil
}

// SetSnapshot leaves out a snapshot that is ahead of the head. Such a snapshot belongs to a history
// that was replaced when the head was put back. The next commit removes it; see adaptToHead.
func SetSnapshot(h *journaltype.Head, s *journaltype.Snapshot) {
	if s != nil && s.Number <= h.Version {
		h.Snapshot = s
	}
}

// Version implements Journal.Version.
func (j *Engine) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	version, err := j.Layout.Version(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read version of %s: %w", id, err)
	}
	return version, nil
}

// DeletedErrorOf returns the error for the head of a deleted aggregate.
func DeletedErrorOf(h journaltype.Head) error {
	return &journaltype.DeletedError{ID: h.Aggregate, Version: h.Version, At: h.DeletedAt}
}
