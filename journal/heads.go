package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// HeadsQuery asks for the heads of many aggregates.
type HeadsQuery struct {
	// AggregateType leaves out all others, and reads only its partitions. Empty for all types.
	AggregateType string
	// After is the aggregate of the head after which to continue. Zero for the beginning. It is of
	// AggregateType, if there is one.
	After aggregate.ID
	// Limit is the number of heads after which the sequence ends. Heads that are passed to Corrupt
	// do not count. To continue, set After to the last one. Default: 0, which is no limit.
	Limit int
	// Corrupt, if set, is called for heads that cannot be read, and for those that are Misplaced:
	// that are not where readers look for the head of their aggregate. Without it the former end
	// the sequence, and Heads yields the latter.
	Corrupt func(*CorruptItemError)
}

// Heads yields the heads of the store, without their snapshots and with tombstones, in an order
// that stays the same as long as nothing is written. An aggregate that is created meanwhile may be
// missing.
//
// In the layout [Classic] it scans the snapshot table, strongly consistent and page by page: one
// read unit for each 4 KB of everything in it, including states, because DynamoDB bills whole
// items. In the layout [Packed] it scans the index of aggregates, which is eventually consistent,
// and reads the last commit of each, 16 at a time: one read unit for each 4 KB of it.
//
// With [HeadsQuery].Limit the cost is in proportion to the limit: a page has as many items as heads
// are wanted. In Classic redundant snapshots between the heads are read too. Heads of one type are
// read shard by shard, and each shard costs at least one read unit, in Packed half a unit.
//
// It ends with the first error: [*CorruptItemError], whose Aggregate, if it is set, is the After
// with which to continue, [ErrThrottled], [ErrTableMissing], [ErrAccess], the context's,
// *aggregate.InvalidIDError for After, [*ConfigError] for a negative Limit.
func (j *Journal) Heads(ctx context.Context, q HeadsQuery) iter.Seq2[Head, error] {
	return j.engine.Heads(ctx, q)
}

func (j *engine) Heads(ctx context.Context, q HeadsQuery) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		err := q.validate()
		if err == nil {
			pages := newHeadPages(q.Limit)
			err = j.layout.heads(ctx, q, pages, func(h Head) bool { return yield(h, nil) && pages.more() })
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Head{}, fmt.Errorf("read heads: %w", err))
		}
	}
}

func (q HeadsQuery) validate() error {
	if q.Limit < 0 {
		return &ConfigError{Field: "HeadsQuery.Limit", Reason: fmt.Sprintf("is %d: use 0 for no limit", q.Limit)}
	}
	if q.After == (aggregate.ID{}) {
		return nil
	}
	if q.AggregateType != "" && q.After.Type != q.AggregateType {
		return &aggregate.InvalidIDError{ID: q.After, Reason: fmt.Sprintf("After is not of type %q, whose heads are asked for", q.AggregateType)}
	}
	return q.After.Validate()
}

func (j *engine) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError)) iter.Seq2[[]Head, error] {
	return func(yield func([]Head, error) bool) {
		err := j.layout.shardHeads(ctx, q, corrupt, func(heads []Head) bool { return yield(heads, nil) })
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("read heads of %s: %w", storage.ShardKey(q.AggregateType, q.Shard), err))
		}
	}
}
