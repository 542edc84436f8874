package journal

import (
	"context"
	"iter"
	"time"
)

// Tail yields the events of all aggregates of a type that were written at since or later, in the
// order of Record.WrittenAt. It ends when it has read all of them. The zero time means from the
// beginning. It reads the tail index, a page of each shard at a time. It costs half a read unit for
// each 4 KB, and at least half a unit for each shard.
//
// Tail is for tools, such as a dump or a report. The index is eventually consistent and the clocks
// of writers differ. So the newest events may be missing, and the events of an aggregate may be out
// of order. Package subscriber delivers every event once and in order.
//
// An event that cannot be decoded is yielded as a nil Record with a [*CorruptItemError], an
// [*EncodingError] or an [*EventTypeError]; the sequence continues. Any other error ends the
// sequence: [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError, or the error
// of ctx.
func (j *Journal) Tail(ctx context.Context, aggregateType string, since time.Time) iter.Seq2[*Record, error] {
	return j.engine.Tail(ctx, aggregateType, since)
}
