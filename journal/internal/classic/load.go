package classic

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// eventBytes is about the size of an event without its payload.
const eventBytes = 250

// unitsOfEvents is about what Events costs.
func unitsOfEvents(events, bytes int) float64 {
	if events <= byKeyUpTo {
		return float64(max(events, bytes>>12))
	}
	return float64(bytes) / (8 << 10)
}

// Load reads the head and then the events. If events were truncated in between, or the aggregate
// was deleted, it starts again with the head that shows this.
func (l *layout) Load(
	ctx context.Context, id aggregate.ID, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	before := uint64(0) // the highest TruncatedBefore that was read
	for {
		it, err := l.GetItem(ctx, l.Config.Tables.Snapshot, l.key(id, 0))
		if err != nil {
			return storage.Loaded{}, err
		}
		head, err := l.headOf(id, it)
		if err != nil {
			return storage.Loaded{}, err
		}
		worth := storage.Worth{Head: storage.HeadSize{Item: table.ItemSize(it)}}
		if payload, ok := table.BytesOf(it[l.Config.Attributes.Payload]); ok {
			worth.Head.State = len(payload)
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
			worth.Commits++
			worth.Bytes += eventBytes + len(r.Payload)
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
			worth.Units = unitsOfEvents(worth.Commits, worth.Bytes)
			return storage.Loaded{Version: head.Version, Worth: worth}, err
		}
	}
}
