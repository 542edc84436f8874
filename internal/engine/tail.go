package engine

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// TailShard reads one page of a logical shard from the tail index, in the order in which events
// were written (Record.WrittenAt). In Classic a page has at most 1 MB. In Packed it has a page
// of each of the shard's partitions. Events that the index lacks are read by key, up to about 1
// MB.
//
// The index is eventually consistent and the clocks of writers differ. So an event can appear
// before a place that was already read. TailShard only hints at the aggregates that have
// changed. The order and completeness of their events follow from the sequence numbers.
func (j *Engine) TailShard(ctx context.Context, q storage.TailQuery) (storage.TailPage, error) {
	page, err := j.Layout.Tail(ctx, q)
	if err != nil {
		return storage.TailPage{}, fmt.Errorf("tail %s: %w", storage.ShardKey(q.AggregateType, q.Shard), err)
	}
	return page, nil
}

// Tail implements Journal.Tail.
func (j *Engine) Tail(ctx context.Context, aggregateType string, since time.Time) iter.Seq2[*journaltype.Record, error] {
	return func(yield func(*journaltype.Record, error) bool) {
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
	ahead  []*journaltype.Record
	more   bool
}

// readAhead reads a page of each partition that has no records ahead and may have more.
func (j *Engine) readAhead(ctx context.Context, aggregateType string, shards []*shardTail) (corrupt []*journaltype.CorruptItemError, err error) {
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
func mergeTails(shards []*shardTail) (records []*journaltype.Record, more bool) {
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
			n = slices.IndexFunc(s.ahead, func(r *journaltype.Record) bool { return r.WrittenAt.After(limit) })
			if n < 0 {
				n = len(s.ahead)
			}
		}
		records = append(records, s.ahead[:n]...)
		s.ahead = s.ahead[n:]
	}
	slices.SortStableFunc(records, func(a, b *journaltype.Record) int {
		return cmp.Or(a.WrittenAt.Compare(b.WrittenAt), strings.Compare(a.Aggregate.Value, b.Aggregate.Value), cmp.Compare(a.Number, b.Number))
	})
	return records, more
}
