package journal

import (
	"context"
	"iter"
)

// Newest yields the newest events of all aggregates of a type, newest first by Record.WrittenAt. It
// reads up to limit entries of each shard. In the layout [Classic] an entry of the tail index is an
// event. In [Packed] it is a commit. After [Journal.GrowTail] a shard has several partitions there,
// each with up to limit entries. The first limit entries of the sequence are the newest of the
// type. After them, events of shards with more entries may be missing.
//
// Newest reads the tail index from its end, up to 16 partitions at a time, before it yields the
// first event. It keeps the entries in memory. It costs half a read unit for each 4 KB of entries,
// and at least half a unit for each partition. In Packed, the index lacks the events of commits
// larger than about 1 KB. These cost half a read unit more for each 4 KB. They are read when the
// sequence reaches them, 50 at a time.
//
// The index is eventually consistent, so the events of the last second may be missing. Events with
// a time in the future, written by a clock that is ahead, come first.
//
// An event that cannot be decoded is yielded as [Journal.Tail] does: as a nil Record with a
// [*CorruptItemError], an [*EncodingError] or an [*EventTypeError]. Corrupt items come before the
// events that were read with them. Any other error ends the sequence: [*ConfigError] for a limit
// under 1, [ErrThrottled], [ErrTableMissing], [ErrAccess], *aggregate.InvalidIDError, or the error
// of ctx.
func (j *Journal) Newest(ctx context.Context, aggregateType string, limit int) iter.Seq2[*Record, error] {
	return j.engine.Newest(ctx, aggregateType, limit)
}
