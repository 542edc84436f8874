package engine

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/storage"
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
