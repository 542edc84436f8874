package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
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

func (j *Engine) Heads(ctx context.Context, q HeadsQuery) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		err := validateHeadsQuery(q)
		if err == nil {
			pages := newHeadPages(q.Limit)
			err = j.Layout.Heads(ctx, q, pages, func(h Head) bool { return yield(h, nil) && pages.more() })
		}
		if err != nil && !errors.Is(err, ErrStop) {
			yield(Head{}, fmt.Errorf("read heads: %w", err))
		}
	}
}

func validateHeadsQuery(q HeadsQuery) error {
	if q.Limit < 0 {
		return &ConfigError{Field: "HeadsQuery.Limit", Reason: fmt.Sprintf("is %d: use 0 for no limit", q.Limit)}
	}
	if q.After == (aggregate.ID{}) {
		return nil
	}
	if q.AggregateType != "" && q.After.Type != q.AggregateType {
		return &aggregate.InvalidIDError{ID: q.After, Reason: fmt.Sprintf("After is not of the type %q of the query", q.AggregateType)}
	}
	return q.After.Validate()
}

// ShardHeads yields the heads of one logical shard without their snapshots, in a stable order.
// It reads a page only when it is needed, so the caller controls the pace. In Classic a page is
// up to 1 MB of the snapshot table, in the order of the sort keys. In Packed it is up to 200
// aggregates of the index of aggregates, in the order of their ids, and the last commit of each
// is read separately.
//
// Unless the query is Consistent, it reads eventually consistent, so recent writes may be
// missing. The index of aggregates is always eventually consistent, so in Packed a new
// aggregate may be missing in any case. Heads that cannot be decoded go to corrupt.
//
// Errors: ErrThrottled, ErrTableMissing, ErrAccess, and the error of ctx.
func (j *Engine) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError)) iter.Seq2[[]Head, error] {
	return func(yield func([]Head, error) bool) {
		err := j.Layout.ShardHeads(ctx, q, corrupt, func(heads []Head) bool { return yield(heads, nil) })
		if err != nil && !errors.Is(err, ErrStop) {
			yield(nil, fmt.Errorf("read heads of %s: %w", storage.ShardKey(q.AggregateType, q.Shard), err))
		}
	}
}
