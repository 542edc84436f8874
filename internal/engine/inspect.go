package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Inspect reads everything that the tables hold of an aggregate, not only the events up to the
// version of the head. It calls each with every event of the aggregate in the journal table,
// and lists in the inspection the items that cannot be decoded. The events come in the order of
// their keys: as text in Classic, as numbers in Packed. All reads are strongly consistent.
//
// Head and events are separate reads, so a commit or a removal that is under way can be partly
// visible. A fault counts only if another inspection finds it again a little later.
//
// Errors: ErrTableMissing, ErrThrottled, ErrAccess, *aggregate.InvalidIDError, and the error of
// ctx.
func (j *Engine) Inspect(ctx context.Context, id aggregate.ID, each func(*journaltype.Record)) (storage.Inspection, error) {
	if err := id.Validate(); err != nil {
		return storage.Inspection{}, err
	}
	var found storage.Inspection
	if err := j.Layout.Inspect(ctx, id, &found, each); err != nil {
		return storage.Inspection{}, fmt.Errorf("inspect %s: %w", id, err)
	}
	return found, nil
}

// Strays yields items of the journal table that no reader finds. In Classic these are events
// whose aggregate has no head or belongs to another shard, and unknown items. In Packed they
// are events of an aggregate without event 1, items that an index has in another shard, and
// items whose keys name no event. It may yield only one of the events of an aggregate.
//
// It scans the table, eventually consistent, and reads the head, or event 1, of the aggregates
// on a page. With an aggregateType, Classic reads only the shards of that type; Packed scans
// the whole table.
//
// The first error ends the sequence: ErrTableMissing, ErrThrottled, ErrAccess, or the error of
// ctx.
func (j *Engine) Strays(ctx context.Context, aggregateType string) iter.Seq2[*journaltype.CorruptItemError, error] {
	return func(yield func(*journaltype.CorruptItemError, error) bool) {
		err := j.Layout.Strays(ctx, aggregateType, func(stray *journaltype.CorruptItemError) bool { return yield(stray, nil) })
		if err != nil && !errors.Is(err, ErrStop) {
			yield(nil, fmt.Errorf("find items that readers do not reach: %w", err))
		}
	}
}

// AsCorrupt converts the error of parse or recordsOf, which always is a *journal.CorruptItemError.
func AsCorrupt(err error) *journaltype.CorruptItemError {
	if err == nil {
		return nil
	}
	var corrupt *journaltype.CorruptItemError
	errors.As(err, &corrupt)
	return corrupt
}
