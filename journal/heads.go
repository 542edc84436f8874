package journal

import (
	"context"
	"iter"
)

// Heads yields the heads of the journal, without their snapshots. It also yields tombstones. The
// order stays the same as long as nothing is written. An aggregate that is created meanwhile may be
// missing.
//
// In the layout [Classic] it scans the snapshot table, strongly consistent and page by page. It
// costs one read unit for each 4 KB of the whole table, including states, because DynamoDB bills
// whole items. In the layout [Packed] it scans the index of aggregates, which is eventually
// consistent. It also reads the last commit of each aggregate, 16 at a time, at one read unit for
// each 4 KB of it.
//
// With [HeadsQuery].Limit the cost is proportional to the limit: a page has as many items as heads
// are wanted. In Classic, redundant snapshots between the heads are read too. Heads of one type are
// read shard by shard, and each shard costs at least one read unit, or half a unit in Packed.
//
// The first error ends the sequence: [*CorruptItemError], [ErrThrottled], [ErrTableMissing],
// [ErrAccess], *aggregate.InvalidIDError for After, [*ConfigError] for a negative Limit, or the
// error of ctx. If the Aggregate of a CorruptItemError is set, use it as After to continue.
func (j *Journal) Heads(ctx context.Context, q HeadsQuery) iter.Seq2[Head, error] {
	return j.engine.Heads(ctx, q)
}
