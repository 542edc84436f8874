package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
)

// NewestAtOnce is the number of partitions of the tail that are read at the same time.
const NewestAtOnce = 16

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

func (j *Engine) Newest(ctx context.Context, aggregateType string, limit int) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		err := (aggregate.ID{Type: aggregateType, Value: "x"}).Validate()
		if err == nil && limit < 1 {
			err = &ConfigError{Field: "limit", Reason: fmt.Sprintf("of Newest is %d: use 1 or more", limit)}
		}
		if err == nil {
			err = j.Layout.Newest(ctx, aggregateType, limit, func(page storage.TailPage) error { return j.yieldPage(ctx, page, yield) })
		}
		if err != nil && !errors.Is(err, ErrStop) {
			yield(nil, fmt.Errorf("read newest events of %s: %w", aggregateType, err))
		}
	}
}

// yieldPage yields the corrupt items of a page, and then its events.
func (j *Engine) yieldPage(ctx context.Context, page storage.TailPage, yield func(*Record, error) bool) error {
	for _, item := range page.Corrupt {
		if !yield(nil, item) {
			return ErrStop
		}
	}
	for _, stored := range page.Records {
		if !yield(j.Decode(ctx, stored)) {
			return ErrStop
		}
	}
	return nil
}

// Backwards reads up to limit entries of a partition of the tail, beginning with the last one.
func Backwards[T any](ctx context.Context, s *Store, input *dynamodb.QueryInput, limit int, of func(rows.Row) T) (entries []T, err error) {
	input.ScanIndexForward = aws.Bool(false)
	for {
		input.Limit = aws.Int32(int32(min(limit-len(entries), math.MaxInt32)))
		page, err := rows.Query(ctx, s.Source, input, of)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Items...)
		if input.ExclusiveStartKey = page.LastKey; page.LastKey == nil || len(entries) >= limit {
			return entries, nil
		}
	}
}

// SortNewest sorts records so that the newest is first. Among records of the same time, the events
// of an aggregate stay together, the last one first.
func SortNewest(records []*Record) {
	slices.SortStableFunc(records, func(a, b *Record) int {
		return cmp.Or(b.WrittenAt.Compare(a.WrittenAt), strings.Compare(b.Aggregate.Value, a.Aggregate.Value), cmp.Compare(b.Number, a.Number))
	})
}
