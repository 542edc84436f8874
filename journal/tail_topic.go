package journal

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
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

func (j *Engine) Tail(ctx context.Context, aggregateType string, since time.Time) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if err := (aggregate.ID{Type: aggregateType, Value: "x"}).Validate(); err != nil {
			yield(nil, err)
			return
		}
		parts, err := j.Layout.TailFactor(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		shards := make([]*shardTail, j.Config.Shards*parts)
		for i := range shards {
			shards[i] = &shardTail{number: i / parts, part: i%parts + 1, more: true}
			if !since.IsZero() {
				shards[i].next = storage.CursorAt(since)
			}
		}
		for {
			corrupt, err := j.readAhead(ctx, aggregateType, shards)
			for _, item := range corrupt {
				if !yield(nil, item) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			records, more := mergeTails(shards)
			for _, stored := range records {
				if !yield(j.Decode(ctx, stored)) {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// shardTail is a partition of a shard's tail, with its records that were read but not yielded yet.
type shardTail struct {
	number int
	part   int // from 1
	next   storage.Cursor
	ahead  []*Record
	more   bool
}

// readAhead reads a page of each partition that has no records ahead and may have more.
func (j *Engine) readAhead(ctx context.Context, aggregateType string, shards []*shardTail) (corrupt []*CorruptItemError, err error) {
	for _, s := range shards {
		// A page may consist of corrupt items only.
		for s.more && len(s.ahead) == 0 {
			page, err := j.TailShard(ctx, storage.TailQuery{AggregateType: aggregateType, Shard: s.number, Part: s.part, After: s.next})
			if err != nil {
				return corrupt, err
			}
			s.ahead, s.next, s.more = page.Records, page.Next, page.More
			corrupt = append(corrupt, page.Corrupt...)
		}
	}
	return corrupt, nil
}

// mergeTails takes the records of all partitions that are older than every unread one, in the order
// of their times.
func mergeTails(shards []*shardTail) (records []*Record, more bool) {
	var limit time.Time
	for _, s := range shards {
		if !s.more {
			continue
		}
		if last := s.ahead[len(s.ahead)-1].WrittenAt; !more || last.Before(limit) {
			limit = last
		}
		more = true
	}
	for _, s := range shards {
		n := len(s.ahead)
		if more {
			n = slices.IndexFunc(s.ahead, func(r *Record) bool { return r.WrittenAt.After(limit) })
			if n < 0 {
				n = len(s.ahead)
			}
		}
		records = append(records, s.ahead[:n]...)
		s.ahead = s.ahead[n:]
	}
	slices.SortStableFunc(records, func(a, b *Record) int {
		return cmp.Or(a.WrittenAt.Compare(b.WrittenAt), strings.Compare(a.Aggregate.Value, b.Aggregate.Value), cmp.Compare(a.Number, b.Number))
	})
	return records, more
}
