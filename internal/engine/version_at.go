package engine

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (j *Engine) VersionAt(ctx context.Context, id aggregate.ID, at time.Time) (uint64, error) {
	raw := j.Raw()
	head, err := raw.Head(ctx, id)
	if err != nil {
		return 0, err
	}
	if !head.DeletedAt.IsZero() {
		return 0, &journaltype.DeletedError{ID: id, Version: head.Version, At: head.DeletedAt}
	}
	return raw.NumberAt(ctx, head, at)
}
