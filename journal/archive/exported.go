package archive

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// ids yields the aggregates of an export, in a stable order.
func (x *exporter) ids(ctx context.Context) func(yield func(aggregate.ID, error) bool) {
	return func(yield func(aggregate.ID, error) bool) {
		if x.only.isOne() {
			if x.after != x.only.Aggregate {
				yield(x.only.Aggregate, nil)
			}
			return
		}
		if !x.since.IsZero() {
			x.yieldWritten(ctx, yield)
			return
		}
		stopped := false
		query := journal.HeadsQuery{AggregateType: x.only.AggregateType, After: x.after, Corrupt: func(head *journal.CorruptItemError) {
			if met, err := x.meet(ctx, head); met && !stopped {
				stopped = !yield(head.Aggregate, err)
			}
		}}
		for head, err := range x.journal.Heads(ctx, query) {
			if stopped || !yield(head.Aggregate, err) {
				return
			}
		}
	}
}

// yieldWritten yields the aggregates that have events since a time.
func (x *exporter) yieldWritten(ctx context.Context, yield func(aggregate.ID, error) bool) {
	for shard := range x.journal.Config.Shards {
		written := map[aggregate.ID]bool{}
		query := storage.TailQuery{AggregateType: x.only.AggregateType, Shard: shard, After: storage.CursorAt(x.since), NumbersOnly: true}
		for more := true; more; {
			page, err := x.journal.TailShard(ctx, query)
			if err != nil {
				yield(aggregate.ID{}, err)
				return
			}
			for _, unreadable := range page.Corrupt {
				if id := unreadable.Aggregate; id != (aggregate.ID{}) {
					written[id] = true // reading the aggregate will return its error
				} else if !yield(id, unreadable) {
					return
				}
			}
			for _, r := range page.Records {
				written[r.Aggregate] = true
			}
			query.After, more = page.Next, page.More
		}
		for _, id := range slices.SortedFunc(maps.Keys(written), func(a, b aggregate.ID) int { return strings.Compare(a.Value, b.Value) }) {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// meet reports whether the export has to handle a head that cannot be used, and returns the error
// with which its aggregate cannot be read.
func (x *exporter) meet(ctx context.Context, head *journal.CorruptItemError) (met bool, err error) {
	if !head.Misplaced {
		return true, head
	}
	switch _, err := x.journal.Head(ctx, head.Aggregate); {
	case errors.Is(err, journal.ErrNotFound), errors.As(err, new(*aggregate.InvalidIDError)):
		return true, head
	case err == nil, errors.As(err, new(*journal.CorruptItemError)):
		// The export handles the aggregate at its right place, because it can be resumed only
		// there.
		return false, nil
	default:
		return true, err
	}
}
