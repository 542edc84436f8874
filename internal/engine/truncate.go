package engine

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// RemovesBetweenReports is the largest number of removed events between two calls of
// journal.RemoveOptions.Progress.
const RemovesBetweenReports = 500

// Truncate implements Journal.Truncate.
func (j *Engine) Truncate(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error {
	err := id.Validate()
	if err == nil {
		err = j.Layout.Truncate(ctx, id, before, options)
	}
	if err != nil {
		return fmt.Errorf("truncate %s before event %d: %w", id, before, err)
	}
	return nil
}

// Delete implements Journal.Delete.
func (j *Engine) Delete(ctx context.Context, id aggregate.ID, expected uint64, options journaltype.RemoveOptions) error {
	err := id.Validate()
	if err == nil {
		err = j.Layout.Delete(ctx, id, expected, options)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

// NotCovered returns the error for events that no snapshot replaces.
func NotCovered(before uint64) error {
	return fmt.Errorf("%w: first store a snapshot of event %d or later", journaltype.ErrNotCovered, before-1)
}
