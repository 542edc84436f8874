package classic

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Load reads the head and then the events. If events were truncated in between, or the aggregate
// was deleted, it starts again with the head that shows this.
func (l *layout) Load(
	ctx context.Context, id aggregate.ID, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	before := uint64(0) // the highest TruncatedBefore that was read
	for {
		head, err := l.Head(ctx, id)
		if err != nil {
			return storage.Loaded{}, err
		}
		if !head.DeletedAt.IsZero() {
			return storage.Loaded{}, engine.DeletedErrorOf(head)
		}
		before = max(before, head.TruncatedBefore)
		number, err := begin(head)
		if err != nil {
			return storage.Loaded{}, err
		}
		var refused error
		err = l.Events(ctx, id, number+1, head.Version, func(r *journaltype.Record) bool {
			refused = apply(r)
			return refused == nil
		})
		var truncated *journaltype.TruncatedError
		switch {
		case refused != nil:
			return storage.Loaded{}, refused
		case errors.As(err, &truncated) && truncated.Before > before:
			before = truncated.Before
		default:
			return storage.Loaded{Version: head.Version}, err
		}
	}
}
