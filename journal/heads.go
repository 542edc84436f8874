package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// HeadsQuery selects the heads that [Journal.Heads] yields.
type HeadsQuery struct {
	// AggregateType selects one type; only its partitions are read. Default: empty, which selects
	// all types.
	AggregateType string
	// After is the aggregate of the last head that was yielded, to continue after it. Default:
	// zero, which begins with the first. If AggregateType is set, After must have that type.
	After aggregate.ID
	// Limit is the number of heads after which the sequence ends. Heads that are passed to Corrupt
	// do not count. To continue, set After to the last one. Default: 0, which is no limit.
	Limit int
	// Corrupt, if set, is called for heads that cannot be decoded, and for heads that are
	// Misplaced, which means that readers expect them in another place. If Corrupt is nil, a head
	// that cannot be decoded ends the sequence, and a misplaced one is yielded.
	Corrupt func(*CorruptItemError)
}

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
		return &aggregate.InvalidIDError{ID: q.After, Reason: fmt.Sprintf("After is not of the type %q of the query", q.AggregateType)}
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
