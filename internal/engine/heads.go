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

// Heads implements Journal.Heads.
func (j *Engine) Heads(ctx context.Context, q journaltype.HeadsQuery) iter.Seq2[journaltype.Head, error] {
	return func(yield func(journaltype.Head, error) bool) {
		err := validateHeadsQuery(q)
		if err == nil {
			pages := newHeadPages(q.Limit)
			err = j.Layout.Heads(ctx, q, pages, func(h journaltype.Head) bool { return yield(h, nil) && pages.more() })
		}
		if err != nil && !errors.Is(err, ErrStop) {
			yield(journaltype.Head{}, fmt.Errorf("read heads: %w", err))
		}
	}
}

func validateHeadsQuery(q journaltype.HeadsQuery) error {
	if q.Limit < 0 {
		return &journaltype.ConfigError{Field: "HeadsQuery.Limit", Reason: fmt.Sprintf("is %d: use 0 for no limit", q.Limit)}
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
func (j *Engine) ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*journaltype.CorruptItemError)) iter.Seq2[[]journaltype.Head, error] {
	return func(yield func([]journaltype.Head, error) bool) {
		err := j.Layout.ShardHeads(ctx, q, corrupt, func(heads []journaltype.Head) bool { return yield(heads, nil) })
		if err != nil && !errors.Is(err, ErrStop) {
			yield(nil, fmt.Errorf("read heads of %s: %w", storage.ShardKey(q.AggregateType, q.Shard), err))
		}
	}
}
